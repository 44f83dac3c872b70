import { createPrivateKey, generateKeyPairSync, type KeyObject, randomUUID } from "node:crypto";
import {
  type FileHandle,
  link,
  mkdir,
  open,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  writeFile,
} from "node:fs/promises";
import { join } from "node:path";
import { calculateJwkThumbprint } from "jose";
import { ServiceError } from "../../domain/errors.ts";

/** A key as it lies in its file. */
export interface KeyFile {
  readonly kid: string;
  readonly privateKey: KeyObject;
  /** null: active. */
  readonly retiredAtMs: number | null;
}

/**
 * The directory `keys`: a file KID.json for each key, and `active`, which names the one to sign
 * with. Every file appears whole, by link or rename, and only its user can read it.
 */
export interface KeyDirectory {
  make(): Promise<void>;
  /** The kid that `active` names; null without such a file. */
  activeKid(): Promise<string | null>;
  kids(): Promise<readonly string[]>;
  /** null when there is none. */
  read(kid: string): Promise<KeyFile | null>;
  /** Makes a key, not yet the active one, and answers its kid. */
  add(): Promise<string>;
  /** Makes a key the active one. `first`: only if there is none; false when there was. */
  activate(kid: string, how: "first" | "instead"): Promise<boolean>;
  retire(kid: string, atMs: number): Promise<void>;
  drop(kid: string): Promise<void>;
  /** Changes whenever any process changes the keys. */
  fingerprint(): Promise<string>;
}

const kidPattern = /^[A-Za-z0-9_-]{43}$/;
const activeName = "active";

export function openKeyDirectory(dataDir: string): KeyDirectory {
  const dir = join(dataDir, "keys");
  const activePath = join(dir, activeName);
  const pathOf = (kid: string) => join(dir, `${kid}.json`);
  return {
    async make() {
      await mkdir(dir, { recursive: true, mode: 0o700 });
    },
    async activeKid() {
      const kid = (await readIfThere(activePath))?.trim() ?? null;
      if (kid !== null && !kidPattern.test(kid)) throw unreadable(activePath);
      return kid;
    },
    async kids() {
      const names = (await listIfThere(dir)).filter((name) => name.endsWith(".json"));
      return names.map((name) => name.slice(0, -".json".length)).filter(isKid);
    },
    read: (kid) => readKey(pathOf(kid), kid),
    async add() {
      const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
      const kid = await calculateJwkThumbprint(privateKey);
      await rename(await writeAside(dir, textOf(privateKey, null)), pathOf(kid));
      return kid;
    },
    async activate(kid, how) {
      const aside = await writeAside(dir, `${kid}\n`);
      if (how === "first") return claim(aside, activePath);
      await rename(aside, activePath);
      return true;
    },
    async retire(kid, atMs) {
      const key = await readKey(pathOf(kid), kid);
      if (key === null || key.retiredAtMs !== null) return;
      await rename(await writeAside(dir, textOf(key.privateKey, atMs)), pathOf(kid));
    },
    drop: (kid) => rm(pathOf(kid), { force: true }),
    fingerprint: () => fingerprintOf(dir),
  };
}

/** Of several processes, one wins. */
async function claim(aside: string, path: string): Promise<boolean> {
  try {
    await link(aside, path);
    return true;
  } catch (error) {
    if (codeOf(error) === "EEXIST") return false;
    throw error;
  } finally {
    await rm(aside, { force: true });
  }
}

async function writeAside(dir: string, text: string): Promise<string> {
  const path = join(dir, `.${randomUUID()}`);
  await writeFile(path, text, { flag: "wx", mode: 0o600, flush: true });
  return path;
}

async function readKey(path: string, kid: string): Promise<KeyFile | null> {
  const text = await readPrivate(path);
  if (text === null) return null;
  try {
    const { privateKey, retiredAtMs } = parseKey(text);
    if ((await calculateJwkThumbprint(privateKey)) === kid) return { kid, privateKey, retiredAtMs };
  } catch {
    // The parser's own text can hold a piece of the key.
  }
  throw unreadable(path);
}

/** null when there is none. Whoever reads a signing key can speak for every owner: nobody may. */
async function readPrivate(path: string): Promise<string | null> {
  const file = await openIfThere(path);
  if (file === null) return null;
  try {
    const { mode } = await file.stat();
    if ((mode & 0o077) === 0 || process.platform === "win32") return await file.readFile("utf8");
  } finally {
    await file.close();
  }
  throw new ServiceError("UNAVAILABLE", `Others can read ${path}. Run: chmod 600 ${path}`);
}

async function openIfThere(path: string): Promise<FileHandle | null> {
  try {
    return await open(path);
  } catch (error) {
    if (codeOf(error) === "ENOENT") return null;
    throw error;
  }
}

function textOf(privateKey: KeyObject, retiredAtMs: number | null): string {
  const jwk = { ...privateKey.export({ format: "jwk" }), alg: "ES256", use: "sig" };
  const retiredAt = retiredAtMs === null ? null : new Date(retiredAtMs).toISOString();
  return `${JSON.stringify({ state: retiredAt ? "retired" : "active", retiredAt, jwk })}\n`;
}

function parseKey(text: string): Omit<KeyFile, "kid"> {
  const { retiredAt, jwk } = JSON.parse(text);
  const privateKey = createPrivateKey({ key: jwk, format: "jwk" });
  if (privateKey.asymmetricKeyDetails?.namedCurve !== "prime256v1") throw new Error("not P-256");
  const retiredAtMs = retiredAt === null ? null : Date.parse(retiredAt);
  if (Number.isNaN(retiredAtMs)) throw new Error("retiredAt is no time");
  return { privateKey, retiredAtMs };
}

/** A rename gives a file another inode, so that no change hides in a coarse clock. */
async function fingerprintOf(dir: string): Promise<string> {
  const names = (await listIfThere(dir)).filter((name) => !name.startsWith(".")).sort();
  return (await Promise.all(names.map((name) => markOf(dir, name)))).join(" ");
}

async function markOf(dir: string, name: string): Promise<string> {
  try {
    const { ino, mtimeNs } = await stat(join(dir, name), { bigint: true });
    return `${name}:${ino}:${mtimeNs}`;
  } catch (error) {
    if (codeOf(error) === "ENOENT") return "";
    throw error;
  }
}

async function readIfThere(path: string): Promise<string | null> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if (codeOf(error) === "ENOENT") return null;
    throw error;
  }
}

async function listIfThere(dir: string): Promise<string[]> {
  try {
    return await readdir(dir);
  } catch (error) {
    if (codeOf(error) === "ENOENT") return [];
    throw error;
  }
}

function isKid(text: string): boolean {
  return kidPattern.test(text);
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : undefined;
}

function unreadable(path: string): ServiceError {
  return new ServiceError("UNAVAILABLE", `The key file ${path} cannot be read`);
}
