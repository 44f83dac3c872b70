import { chmodSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { decodeJwt, decodeProtectedHeader } from "jose";
import { describe, expect, test, vi } from "vitest";
import { isForgery } from "../src/calls/auth/authenticate.ts";
import { issueToken } from "../src/calls/auth/issuer.ts";
import {
  ensureSigningKey,
  loadSigningKeys,
  rotateSigningKeys,
} from "../src/calls/auth/signing-keys.ts";
import { parseTtl, ttlSecondsMax } from "../src/calls/auth/ttl.ts";
import { failureOf, newDataDir, openHouse, sign } from "./auth-fixture.ts";

const dayMs = 86_400_000;

describe("the key files", () => {
  test("are made on first start, readable by their user alone, and found again", async () => {
    const dataDir = newDataDir();
    expect((await failureOf(() => loadSigningKeys(dataDir))).reason).toBe("UNAVAILABLE");
    const made = await ensureSigningKey(dataDir);
    const names = readdirSync(join(dataDir, "keys")).sort();
    expect(names).toEqual([`${made.active.kid}.json`, "active"].sort());
    for (const name of names) {
      expect(statSync(join(dataDir, "keys", name)).mode & 0o777).toBe(0o600);
    }
    expect(statSync(join(dataDir, "keys")).mode & 0o777).toBe(0o700);
    expect((await ensureSigningKey(dataDir)).active.kid).toBe(made.active.kid);
    expect((await loadSigningKeys(dataDir)).active.kid).toBe(made.active.kid);
  });

  test("are one, when several processes start together", async () => {
    const dataDir = newDataDir();
    const made = await Promise.all(Array.from({ length: 8 }, () => ensureSigningKey(dataDir)));
    const kids = new Set(made.map((keys) => keys.active.kid));
    expect(kids.size).toBe(1);
    await vi.waitFor(() => expect(readdirSync(join(dataDir, "keys"))).toHaveLength(2));
  });

  test("are made anew when the active one has gone, and refused when they are damaged", async () => {
    const dataDir = newDataDir();
    const first = await ensureSigningKey(dataDir);
    rmSync(join(dataDir, "keys", `${first.active.kid}.json`));
    const second = await ensureSigningKey(dataDir);
    expect(second.active.kid).not.toBe(first.active.kid);
    const path = join(dataDir, "keys", `${second.active.kid}.json`);
    const whole = readFileSync(path, "utf8");
    writeFileSync(path, whole.slice(0, -20));
    const error = await failureOf(() => ensureSigningKey(dataDir));
    expect(error.reason).toBe("UNAVAILABLE");
    expect(error.facts.cause).toBeUndefined();
  });

  test("one that others can read is refused, and the text says what to do", async () => {
    const dataDir = newDataDir();
    const { active } = await ensureSigningKey(dataDir);
    const path = join(dataDir, "keys", `${active.kid}.json`);
    chmodSync(path, 0o640);
    const error = await failureOf(() => loadSigningKeys(dataDir));
    expect(error.reason).toBe("UNAVAILABLE");
    expect(error.message).toContain(`chmod 600 ${path}`);
    chmodSync(path, 0o600);
    expect((await loadSigningKeys(dataDir)).active.kid).toBe(active.kid);
  });

  test("a key under another's name is refused", async () => {
    const dataDir = newDataDir();
    const { active } = await ensureSigningKey(dataDir);
    const other = await ensureSigningKey(newDataDir());
    const jwk = other.active.privateKey.export({ format: "jwk" });
    writeFileSync(
      join(dataDir, "keys", `${active.kid}.json`),
      JSON.stringify({ state: "active", retiredAt: null, jwk }),
    );
    expect((await failureOf(() => loadSigningKeys(dataDir))).reason).toBe("UNAVAILABLE");
  });
});

describe("a rotation", () => {
  test("keeps the old key until its tokens have expired", async () => {
    using house = await openHouse();
    const old = house.keys.active().kid;
    const token = await sign(house, { exp: (house.nowMs() + 90 * dayMs) / 1000 });
    await house.verifier.verify(token);
    const changed = vi.fn();
    house.keys.onChange(changed);
    const rotated = await rotateSigningKeys(house.dataDir, {
      dropOld: false,
      nowMs: house.nowMs(),
    });
    await vi.waitFor(() => expect(house.keys.active().kid).toBe(rotated.active.kid));
    expect(changed).toHaveBeenCalled();
    // The first look may have fallen between the new key and the retirement of the old one.
    await house.keys.refresh();
    expect(
      house.keys
        .publicJwks()
        .keys.map(({ kid }) => kid)
        .sort(),
    ).toEqual([old, rotated.active.kid].sort());
    // The cache is empty, the key is not gone.
    expect(house.verifier.verify(token)).toBeInstanceOf(Promise);
    expect(await house.verifier.verify(token)).toMatchObject({ keyId: old });
    expect(decodeProtectedHeader(await sign(house)).kid).toBe(rotated.active.kid);

    house.clock.nowMs += 30 * dayMs;
    expect(house.keys.find(old)).toBeDefined();
    house.clock.nowMs += 60_000;
    expect(house.keys.find(old)).toBeUndefined();
    expect(house.keys.publicJwks().keys.map(({ kid }) => kid)).toEqual([rotated.active.kid]);
  });

  test("with dropOld ends the old key's tokens, cached or not", async () => {
    using house = await openHouse();
    const token = await sign(house);
    await house.verifier.verify(token);
    await rotateSigningKeys(house.dataDir, { dropOld: true, nowMs: house.nowMs() });
    await house.keys.refresh();
    const error = await failureOf(() => house.verifier.verify(token));
    expect(error.reason).toBe("UNAUTHORIZED");
    expect(isForgery(error)).toBe(true);
    expect(house.keys.publicJwks().keys).toHaveLength(1);
    expect(readdirSync(join(house.dataDir, "keys"))).toHaveLength(2);
  });

  test("removes keys whose time is over, and keeps the time of those retired before", async () => {
    const dataDir = newDataDir();
    const { active: first } = await ensureSigningKey(dataDir);
    const begin = Date.UTC(2030, 0, 1);
    const { active: second } = await rotateSigningKeys(dataDir, { dropOld: false, nowMs: begin });
    const later = begin + 20 * dayMs;
    const twice = await rotateSigningKeys(dataDir, { dropOld: false, nowMs: later });
    expect(twice.accepted.get(first.kid)?.acceptedUntilMs).toBe(begin + 30 * dayMs + 60_000);
    expect(twice.accepted.get(second.kid)?.acceptedUntilMs).toBe(later + 30 * dayMs + 60_000);
    const last = await rotateSigningKeys(dataDir, { dropOld: false, nowMs: begin + 31 * dayMs });
    expect(last.accepted.has(first.kid)).toBe(false);
    expect(last.accepted.has(second.kid)).toBe(true);
    expect(readdirSync(join(dataDir, "keys"))).toHaveLength(4);
  });

  test("several at once leave one key to sign with, and all readable", async () => {
    const dataDir = newDataDir();
    const options = { dropOld: true, nowMs: Date.UTC(2030, 0, 1) };
    await Promise.allSettled([1, 2, 3].map(() => rotateSigningKeys(dataDir, options)));
    const { active } = await ensureSigningKey(dataDir);
    expect((await loadSigningKeys(dataDir)).active.kid).toBe(active.kid);
  });
});

test("the published keys hold nothing private", async () => {
  using house = await openHouse();
  const [jwk] = house.keys.publicJwks().keys;
  expect(Object.keys(jwk ?? {}).sort()).toEqual(["alg", "crv", "kid", "kty", "use", "x", "y"]);
  expect(jwk).toMatchObject({ kty: "EC", crv: "P-256", alg: "ES256", use: "sig" });
});

describe("issuing", () => {
  test("writes RFC 9068 and leaves out what is not given", async () => {
    const { active } = await ensureSigningKey(newDataDir());
    const nowMs = Date.UTC(2030, 0, 1) + 999;
    const issue = () => issueToken(active, { sub: "me", ttlSeconds: 60, nowMs });
    const { token } = await issue();
    expect(decodeProtectedHeader(token)).toEqual({ alg: "ES256", typ: "at+jwt", kid: active.kid });
    const iat = Date.UTC(2030, 0, 1) / 1000;
    const claims = { iss: "sealflow", aud: "sealflow", sub: "me", iat, exp: iat + 60 };
    expect(decodeJwt(token)).toEqual({ ...claims, jti: expect.stringMatching(/^[\w-]{22}$/) });
    expect(decodeJwt((await issue()).token).jti).not.toBe(decodeJwt(token).jti);
  });

  test.each([
    { sub: "", ttlSeconds: 60 },
    { sub: "a\0", ttlSeconds: 60 },
    { sub: "me", agentId: "register", ttlSeconds: 60 },
    { sub: "me", ttlSeconds: ttlSecondsMax + 1 },
    { sub: "me", ttlSeconds: 0 },
    { sub: "me", ttlSeconds: 1.5 },
  ])("refuses %j", async (draft) => {
    const { active } = await ensureSigningKey(newDataDir());
    const error = await failureOf(() => issueToken(active, { ...draft, nowMs: 0 }));
    expect(error.reason).toBe("VALIDATION_ERROR");
  });

  test.each([
    ["90s", 90],
    ["30m", 1800],
    ["1h", 3600],
    ["7d", 604_800],
    ["30d", ttlSecondsMax],
    ["2592000s", ttlSecondsMax],
  ])("a ttl of %s is %i s", (text, seconds) => expect(parseTtl(text)).toBe(seconds));

  test.each([
    "",
    "0s",
    "31d",
    "2592001s",
    "1w",
    "1.5h",
    "-1h",
    "1 h",
    "h",
    "60",
    "1H",
    "9999999999s",
  ])("a ttl of %j is refused", async (text) => {
    expect((await failureOf(() => parseTtl(text))).reason).toBe("VALIDATION_ERROR");
  });
});
