import { randomBytes } from "node:crypto";
import {
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  statSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";

/** The server's key cannot be had. The text says what to do; it never holds the key. */
export class ServerKeyError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "ServerKeyError";
  }
}

export interface ServerKeySource {
  readonly dataDir: string;
  /** `SEALFLOW_MASTER_KEY`: 32 bytes in base64url. Then no file is read or made. */
  readonly fromSetting?: string | undefined;
  /** Whether the database was made with a key: then none is made in its place. */
  readonly hasKeyCheck: boolean;
}

const keyBytes = 32;
const settingName = "SEALFLOW_MASTER_KEY";

/**
 * The key that seals values at rest: from the setting, else from the file `server.key` of the data
 * directory, which is made at the first start. Throws ServerKeyError.
 */
export function loadServerKey(source: ServerKeySource): {
  readonly key: Uint8Array;
  readonly created: boolean;
} {
  const { dataDir, fromSetting, hasKeyCheck } = source;
  if (fromSetting !== undefined && fromSetting !== "") {
    return { key: decodeKey(fromSetting, settingName), created: false };
  }
  const path = join(dataDir, "server.key");
  const stored = readKeyFile(path);
  if (stored !== null) return { key: decodeKey(stored, path), created: false };
  if (hasKeyCheck) {
    throw new ServerKeyError(
      `${path} is missing, and the database was made with a key. Put the file back, or set ` +
        `${settingName}. Without that key, what it sealed cannot be opened.`,
    );
  }
  return { key: makeKeyFile(dataDir, path), created: true };
}

/** Null when there is none. */
function readKeyFile(path: string): string | null {
  const facts = statSync(path, { throwIfNoEntry: false });
  if (facts === undefined) return null;
  if ((facts.mode & 0o077) !== 0 && process.platform !== "win32") {
    throw new ServerKeyError(`Others can read ${path}. Run: chmod 600 ${path}`);
  }
  return readFileSync(path, "utf8");
}

/** Never replaces a file. What is sealed under the key is lost with it: both are made durable. */
function makeKeyFile(dataDir: string, path: string): Uint8Array {
  const key = randomBytes(keyBytes);
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const file = openSync(path, "wx", 0o600);
  try {
    writeSync(file, `${key.toString("base64url")}\n`);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  syncDirectory(dataDir);
  return key;
}

function syncDirectory(path: string): void {
  if (process.platform === "win32") return;
  const directory = openSync(path, "r");
  try {
    fsyncSync(directory);
  } finally {
    closeSync(directory);
  }
}

function decodeKey(text: string, where: string): Uint8Array {
  const key = Buffer.from(text.trim(), "base64url");
  if (key.length !== keyBytes || key.toString("base64url") !== text.trim()) {
    throw new ServerKeyError(`${where} must hold ${keyBytes} bytes in base64url (43 characters)`);
  }
  return key;
}
