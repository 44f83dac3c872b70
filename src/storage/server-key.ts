import { randomBytes, randomUUID } from "node:crypto";
import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { placeFile, syncPath } from "./whole-file.ts";

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

export interface ServerKey {
  readonly key: Uint8Array;
  /** Whether this call made its file. */
  readonly created: boolean;
}

const keyBytes = 32;
const settingName = "SEALFLOW_MASTER_KEY";

/**
 * The key that seals values at rest: from the setting, else from the file `server.key` of the data
 * directory, which is made at the first start. Throws ServerKeyError.
 */
export function loadServerKey(source: ServerKeySource): ServerKey {
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
  return makeKeyFile(dataDir, path);
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

/**
 * The file appears whole or not at all, and never replaces one: of two that begin at once, both use
 * the first one's. What is sealed under the key is lost with it: file and name are made durable.
 */
function makeKeyFile(dataDir: string, path: string): ServerKey {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const key = randomBytes(keyBytes);
  const aside = `${path}.${randomUUID()}`;
  try {
    writeFileSync(aside, `${key.toString("base64url")}\n`, { flag: "wx", mode: 0o600 });
    syncPath(aside);
    if (!placeFile(aside, path))
      return { key: decodeKey(readFileSync(path, "utf8"), path), created: false };
  } finally {
    rmSync(aside, { force: true });
  }
  syncPath(dataDir);
  return { key, created: true };
}

function decodeKey(text: string, where: string): Uint8Array {
  const key = Buffer.from(text.trim(), "base64url");
  if (key.length !== keyBytes || key.toString("base64url") !== text.trim()) {
    throw new ServerKeyError(`${where} must hold ${keyBytes} bytes in base64url (43 characters)`);
  }
  return key;
}
