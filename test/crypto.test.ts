import { base64url, CompactEncrypt, decodeProtectedHeader } from "jose";
import { describe, expect, test } from "vitest";
import {
  isKey,
  isSealed,
  keyId,
  newKey,
  SealError,
  type SealErrorCode,
  seal,
  sealRecord,
  unseal,
  unsealRecord,
} from "../src/client/crypto.ts";

const key = newKey();
const note = { type: "note", entityId: "n1", version: "1.2.0" };

async function expectRefused(opening: Promise<unknown>, code: SealErrorCode): Promise<void> {
  const error: unknown = await opening.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(SealError);
  expect(error).toMatchObject({ code });
}

function sealWith(header: Record<string, unknown>): Promise<string> {
  return new CompactEncrypt(new TextEncoder().encode("{}"))
    .setProtectedHeader({ alg: "A256KW", enc: "A256GCM", ...header })
    .encrypt(base64url.decode(key), { crit: { sync: true, other: true } });
}

function withPart(jwe: string, index: number, change: (part: string) => string): string {
  return jwe
    .split(".")
    .map((part, at) => (at === index ? change(part) : part))
    .join(".");
}

function flip(part: string): string {
  return (part.startsWith("A") ? "B" : "A") + part.slice(1);
}

describe("seal and unseal", () => {
  test.each([
    [{ text: "to be", n: [1, null, true] }],
    ["a string"],
    [""],
    [0],
    [null],
    ["\u{1F512} ünï"],
    [{ long: "x".repeat(300_000) }],
  ])("give back the same value of JSON", async (value) => {
    expect(await unseal(await seal(value, key), key)).toEqual(value);
  });

  test("give back bytes as bytes", async () => {
    const bytes = Uint8Array.of(0, 255, 1, 128);
    const opened = await unseal(await seal(bytes, key), key);
    expect(opened).toBeInstanceOf(Uint8Array);
    expect(opened).toEqual(bytes);
  });

  test("take a key as bytes or as base64url", async () => {
    const bytes = base64url.decode(key);
    expect(await unseal(await seal({ a: 1 }, bytes), key)).toEqual({ a: 1 });
    expect(await unseal(await seal({ a: 1 }, key), bytes)).toEqual({ a: 1 });
  });

  test("never make the same text twice", async () => {
    expect(await seal("same", key)).not.toBe(await seal("same", key));
  });

  test("name the key and the algorithms in the header, and nothing else", async () => {
    expect(decodeProtectedHeader(await seal({}, key))).toEqual({
      alg: "A256KW",
      enc: "A256GCM",
      kid: await keyId(key),
    });
  });

  test.each([undefined, () => 1, 1n])("refuse what is no value of JSON", async (value) => {
    await expectRefused(seal(value, key), "BAD_PAYLOAD");
  });

  test.each(["", "short", `${key}=`, `${key}A`, key.replace(/.$/, "+"), new Uint8Array(31)])(
    "refuse a key that is none",
    async (bad) => {
      await expectRefused(seal({}, bad), "BAD_KEY");
      await expectRefused(unseal(await seal({}, key), bad), "BAD_KEY");
    },
  );

  test("refuse another key", async () => {
    await expectRefused(unseal(await seal({}, key), newKey()), "CANNOT_OPEN");
  });

  test.each([1, 2, 3, 4])("refuse a seal whose part %i was changed", async (index) => {
    const jwe = await seal({ secret: "for nobody else" }, key);
    await expectRefused(unseal(withPart(jwe, index, flip), key), "CANNOT_OPEN");
  });

  test("refuse a changed header", async () => {
    const jwe = await seal({}, key);
    const header = base64url.encode(
      JSON.stringify({ ...decodeProtectedHeader(jwe), kid: "another" }),
    );
    await expectRefused(
      unseal(
        withPart(jwe, 0, () => header),
        key,
      ),
      "CANNOT_OPEN",
    );
  });

  test.each(["", "plain", "a.b.c.d.e", "{}", "eyJhbGciOiJIUzI1NiJ9.e30.c2ln"])(
    "refuse plain text",
    async (text) => {
      await expectRefused(unseal(text, key), "NOT_SEALED");
    },
  );

  test.each([
    { alg: "dir" },
    { alg: "A256GCMKW" },
    { enc: "A256CBC-HS512" },
    { alg: "PBES2-HS512+A256KW", p2s: "c2FsdHNhbHQ", p2c: 1000 },
  ])("refuse other algorithms", async (change) => {
    const jwe = await seal({}, key);
    const header = base64url.encode(JSON.stringify({ ...decodeProtectedHeader(jwe), ...change }));
    await expectRefused(
      unseal(
        withPart(jwe, 0, () => header),
        key,
      ),
      "UNSUPPORTED",
    );
  });

  test("refuse a real seal of another algorithm, and a compressed one", async () => {
    const direct = await new CompactEncrypt(new TextEncoder().encode("{}"))
      .setProtectedHeader({ alg: "dir", enc: "A256GCM" })
      .encrypt(base64url.decode(key));
    await expectRefused(unseal(direct, key), "UNSUPPORTED");
    await expectRefused(unseal(await sealWith({ zip: "DEF" }), key), "UNSUPPORTED");
  });

  test("refuse content that is neither JSON nor marked as bytes", async () => {
    const jwe = await new CompactEncrypt(Uint8Array.of(255, 0))
      .setProtectedHeader({ alg: "A256KW", enc: "A256GCM" })
      .encrypt(base64url.decode(key));
    await expectRefused(unseal(jwe, key), "BAD_PAYLOAD");
  });
});

describe("sealRecord and unsealRecord", () => {
  test("give back the state of the record", async () => {
    const encryptedData = await sealRecord(note, { text: "hello" }, key);
    expect(await unsealRecord({ ...note, encryptedData }, key)).toEqual({ text: "hello" });
  });

  test("bind type, id and version in a critical header", async () => {
    expect(decodeProtectedHeader(await sealRecord(note, {}, key))).toEqual({
      alg: "A256KW",
      enc: "A256GCM",
      kid: await keyId(key),
      typ: "sync+jwe",
      crit: ["sync"],
      sync: { t: "note", id: "n1", v: "1.2.0" },
    });
  });

  test.each([
    { ...note, type: "task" },
    { ...note, entityId: "n2" },
    { ...note, version: "1.2.1" },
    { ...note, version: "v1.2.0" },
    { ...note, deleted: true },
  ])("refuse the state of another record", async (other) => {
    const encryptedData = await sealRecord(note, {}, key);
    await expectRefused(unsealRecord({ ...other, encryptedData }, key), "WRONG_RECORD");
  });

  test("tell a proof of deletion from a state", async () => {
    const tombstone = { ...note, deleted: true };
    const encryptedData = await sealRecord(tombstone, null, key);
    expect(await unsealRecord({ ...tombstone, encryptedData }, key)).toBeNull();
    await expectRefused(unsealRecord({ ...note, encryptedData }, key), "WRONG_RECORD");
  });

  test("refuse a tombstone without proof", async () => {
    await expectRefused(
      unsealRecord({ ...note, deleted: true, encryptedData: "" }, key),
      "NOT_SEALED",
    );
  });

  test("refuse a seal that names no record, or does not insist on it", async () => {
    const sync = { t: note.type, id: note.entityId, v: note.version };
    for (const encryptedData of [
      await seal({}, key),
      await sealWith({ sync }),
      await sealWith({ crit: ["sync"], sync: "note" }),
      await sealWith({ crit: ["sync", "other"], sync, other: 1 }),
    ]) {
      await expectRefused(unsealRecord({ ...note, encryptedData }, key), "NOT_BOUND");
    }
  });

  test("refuse a header that was changed to fit", async () => {
    const jwe = await sealRecord(note, {}, key);
    const moved = { ...note, entityId: "n2" };
    const header = base64url.encode(
      JSON.stringify({
        ...decodeProtectedHeader(jwe),
        sync: { t: moved.type, id: moved.entityId, v: moved.version },
      }),
    );
    const encryptedData = withPart(jwe, 0, () => header);
    await expectRefused(unsealRecord({ ...moved, encryptedData }, key), "CANNOT_OPEN");
  });

  test("refuse to be opened as if unbound", async () => {
    await expectRefused(unseal(await sealRecord(note, {}, key), key), "WRONG_RECORD");
    const loose = await sealWith({ sync: { t: "note", id: "n1", v: "1.2.0" } });
    await expectRefused(unseal(loose, key), "WRONG_RECORD");
  });
});

describe("keys", () => {
  test("are 32 bytes, and new each time", () => {
    expect(base64url.decode(newKey())).toHaveLength(32);
    expect(isKey(newKey())).toBe(true);
    expect(newKey()).not.toBe(newKey());
  });

  test("have an id that is the same for both forms and tells keys apart", async () => {
    const id = await keyId(key);
    expect(id).toMatch(/^[\w-]{16}$/);
    expect(await keyId(base64url.decode(key))).toBe(id);
    expect(await keyId(newKey())).not.toBe(id);
    expect(key).not.toContain(id);
  });
});

test("isSealed knows a compact JWE", async () => {
  const jwe = await seal({}, key);
  expect(isSealed(jwe)).toBe(true);
  expect(isSealed(await sealRecord(note, {}, key))).toBe(true);
  for (const text of ["", "{}", "a.b.c.d.e", jwe.slice(1), `${jwe}.x`, ` ${jwe}`, `${jwe}\n`]) {
    expect(isSealed(text)).toBe(false);
  }
  const jwsHeader = base64url.encode(JSON.stringify({ alg: "HS256" }));
  expect(isSealed(withPart(jwe, 0, () => jwsHeader))).toBe(false);
});
