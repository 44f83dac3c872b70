import { createHmac, generateKeyPairSync } from "node:crypto";
import { SignJWT } from "jose";
import { describe, expect, test } from "vitest";
import { isForgery, requireGroup } from "../src/calls/auth/authenticate.ts";
import { issueToken } from "../src/calls/auth/issuer.ts";
import { failureOf, type House, openHouse, sign } from "./auth-fixture.ts";

const agentId = "laptop";
const secret = "a secret that both sides know, 32+";

function encode(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString("base64url");
}

function call(house: House, token: string, agent = agentId) {
  return house.authenticate({ authorization: `Bearer ${token}`, agentId: agent });
}

async function refusal(house: House, token: string) {
  const error = await failureOf(() => call(house, token));
  expect(error.reason).toBe("UNAUTHORIZED");
  expect(error.facts.headers).toEqual({
    "www-authenticate": 'Bearer realm="sealflow", error="invalid_token"',
  });
  expect(error.message).not.toContain(token);
  return error;
}

describe("the two headers", () => {
  test.each([
    ["nothing", {}],
    ["no token", { agentId }],
    ["another scheme", { authorization: "Basic YTpi", agentId }],
    ["an empty token", { authorization: "Bearer ", agentId }],
    ["two headers in one", { authorization: "Bearer a.b.c, Bearer a.b.c", agentId }],
  ])("%s is UNAUTHORIZED and asks for a token", async (_, headers) => {
    using house = await openHouse();
    const error = await failureOf(() => house.authenticate(headers));
    expect(error.reason).toBe("UNAUTHORIZED");
    // This text is part of the tour.
    expect(error.message).toBe(
      "Send Authorization: Bearer TOKEN. Get one: sealflow token --sub NAME",
    );
    expect(error.facts.headers).toEqual({ "www-authenticate": 'Bearer realm="sealflow"' });
    expect(isForgery(error)).toBe(false);
  });

  test.each([undefined, "", "register", "a b", "a/b", "ü", "a".repeat(129)])(
    "agent id %j is UNAUTHORIZED, whatever the token",
    async (id) => {
      using house = await openHouse();
      const authorization = `Bearer ${await sign(house)}`;
      const error = await failureOf(() => house.authenticate({ authorization, agentId: id }));
      expect(error.reason).toBe("UNAUTHORIZED");
      expect(error.message).toContain("X-Agent-ID");
      expect(error.facts.headers).toEqual({ "www-authenticate": 'Bearer realm="sealflow"' });
    },
  );

  test("a good token makes a caller, at once the second time, the scheme in any case", async () => {
    using house = await openHouse();
    const token = await sign(house, { sub: "alice" });
    const first = house.authenticate({ authorization: `bearer ${token}`, agentId: "a.B_1:-" });
    expect(first).toBeInstanceOf(Promise);
    expect(await first).toMatchObject({ owner: "alice", agentId: "a.B_1:-" });
    const again = house.authenticate({ authorization: `BEARER  ${token}`, agentId });
    expect(again).toMatchObject({ owner: "alice", agentId });
  });
});

describe("a token is refused", () => {
  test.each([
    ["of another issuer", { iss: "somebody" }, "iss"],
    ["without issuer", { iss: undefined }, "iss"],
    ["for another audience", { aud: "somebody" }, "aud"],
    ["without audience", { aud: undefined }, "aud"],
    ["without exp", { exp: undefined }, "exp"],
    ["with an exp that is no number", { exp: "soon" }, "exp"],
    ["with an exp beyond all dates", { exp: 1e300 }, "exp"],
    ["with an exp before all dates", { exp: -1e300 }, "expired"],
    ["before its nbf", { nbf: Date.UTC(2030, 0, 2) / 1000 }, "2030-01-02T00:00:00.000Z"],
    ["with an nbf that is no number", { nbf: "now" }, "nbf"],
    ["issued in the future", { iat: Date.UTC(2030, 0, 2) / 1000 }, "iat"],
    ["with an iat that is no number", { iat: "now" }, "iat"],
    ["without sub", { sub: undefined }, "sub"],
    ["with an empty sub", { sub: "" }, "sub"],
    ["with a long sub", { sub: "a".repeat(257) }, "sub"],
    ["with NUL in its sub", { sub: "a\0b" }, "sub"],
    ["with half a character in its sub", { sub: "\ud800" }, "sub"],
    ["with a sub that is no text", { sub: 7 }, "sub"],
    ["bound to nobody", { agent_id: "" }, "agent_id"],
    ["bound to a list", { agent_id: ["laptop"] }, "agent_id"],
    ["with a list as scope", { scope: ["sealflow:sync"] }, "scope"],
    ["with a client id that is no text", { client_id: 7 }, "client_id"],
  ])("%s", async (_, claims, named) => {
    using house = await openHouse();
    const error = await refusal(house, await sign(house, claims));
    expect(error.message).toContain(named);
    expect(isForgery(error)).toBe(false);
  });

  test("when it has expired, and says when; 30 s of leeway", async () => {
    using house = await openHouse();
    const token = await sign(house);
    expect(await call(house, token)).toMatchObject({ owner: "me" });
    house.clock.nowMs += 89_000;
    expect(await call(house, token)).toMatchObject({ owner: "me" });
    house.clock.nowMs += 1000;
    const error = await refusal(house, token);
    expect(error.message).toBe("The token expired at 2030-01-01T00:01:00.000Z");
    expect(isForgery(error)).toBe(false);
  });

  test.each([
    ["no JWT at all", "garbage"],
    ["a JWT without dots", "abc".repeat(20)],
    ["two empty parts", ".."],
    ["a header that is no JSON", "bm8.bm8.bm8"],
    ["a header that is a list", `${encode([])}.${encode({})}.AA`],
    ["claims that are a list", `${encode({ alg: "ES256" })}.${encode([])}.AA`],
    ["five parts, as an encrypted one has", `${encode({ alg: "dir", enc: "A128GCM" })}....`],
    ["twenty thousand characters", "a".repeat(20_000)],
  ])("for being %s", async (_, token) => {
    using house = await openHouse();
    expect(isForgery(await refusal(house, token))).toBe(false);
  });

  test("that is not at+jwt", async () => {
    using house = await openHouse();
    expect((await refusal(house, await sign(house, {}, { typ: "JWT" }))).message).toContain("typ");
  });

  test("with a crit that nobody knows, or an unencoded payload", async () => {
    using house = await openHouse();
    const good = await sign(house);
    const [, payload, signature] = good.split(".");
    const { kid } = house.keys.active();
    for (const crit of [{ crit: ["exp2"], exp2: 1 }, { crit: ["b64"], b64: false }, { crit: [] }]) {
      const header = encode({ alg: "ES256", typ: "at+jwt", kid, ...crit });
      await refusal(house, `${header}.${payload}.${signature}`);
    }
  });
});

describe("a forged token is refused as one", () => {
  async function forgery(house: House, token: string) {
    expect(isForgery(await refusal(house, token))).toBe(true);
  }
  const claims = { iss: "sealflow", aud: "sealflow", sub: "me", exp: Date.UTC(2031, 0) / 1000 };

  test("alg none, in every spelling", async () => {
    using house = await openHouse({ secret });
    const { kid } = house.keys.active();
    for (const alg of ["none", "None", "NONE", ""]) {
      await forgery(house, `${encode({ alg, typ: "at+jwt", kid })}.${encode(claims)}.`);
    }
  });

  test("HS256 with the bytes of the public key as its secret", async () => {
    using plain = await openHouse();
    using shared = await openHouse({ secret });
    for (const house of [plain, shared]) {
      const { kid } = house.keys.active();
      const key = house.keys.find(kid);
      const spki = key?.publicKey.export({ type: "spki", format: "pem" }) ?? "";
      const der = key?.publicKey.export({ type: "spki", format: "der" }) ?? "";
      for (const bytes of [spki, der, JSON.stringify(key?.publicJwk), key?.publicJwk.x ?? ""]) {
        const input = `${encode({ alg: "HS256", typ: "at+jwt", kid })}.${encode(claims)}`;
        const mac = createHmac("sha256", bytes).update(input).digest("base64url");
        await forgery(house, `${input}.${mac}`);
      }
    }
  });

  test("a signature that was changed, cut off or taken from another token", async () => {
    using house = await openHouse();
    const [header, , signature = ""] = (await sign(house)).split(".");
    const [, other] = (await sign(house, { sub: "you" })).split(".");
    await forgery(house, `${header}.${other}.${signature}`);
    await forgery(house, `${header}.${other}.`);
    await forgery(house, `${header}.${other}.${Buffer.alloc(64).toString("base64url")}`);
  });

  test("an unknown key, even with the key itself in the header", async () => {
    using house = await openHouse();
    const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    const jwk = publicKey.export({ format: "jwk" });
    const ours = house.keys.active().kid;
    for (const header of [{ kid: "x" }, {}, { kid: ours }, { kid: ours, jwk, jku: "http://x" }]) {
      const token = await new SignJWT(claims)
        .setProtectedHeader({ alg: "ES256", typ: "at+jwt", ...header })
        .sign(privateKey);
      await forgery(house, token);
    }
  });

  test("EdDSA under the name of an ES256 key", async () => {
    using house = await openHouse();
    const { privateKey } = generateKeyPairSync("ed25519");
    const { kid } = house.keys.active();
    const token = await new SignJWT(claims)
      .setProtectedHeader({ alg: "EdDSA", typ: "at+jwt", kid })
      .sign(privateKey);
    await forgery(house, token);
  });

  test("any shared secret, while none is configured, and a wrong one", async () => {
    using plain = await openHouse();
    using shared = await openHouse({ secret });
    for (const house of [plain, shared]) {
      const wrong = Buffer.from("another secret of thirty-two bytes");
      const token = await new SignJWT(claims).setProtectedHeader({ alg: "HS256" }).sign(wrong);
      await forgery(house, token);
    }
  });
});

describe("a shared secret", () => {
  function signShared(claims: Record<string, unknown>, alg = "HS256") {
    const whole = { sub: "me", exp: Date.UTC(2031, 0) / 1000, ...claims };
    return new SignJWT(whole).setProtectedHeader({ alg }).sign(Buffer.from(secret));
  }

  test("signs for owners by its own issuer; a client_id means nothing in it", async () => {
    using house = await openHouse({ secret });
    const token = await signShared({ iss: "app", client_id: "app", scope: "openid" });
    const caller = await call(house, token);
    expect(caller).toMatchObject({ owner: "me", identity: { clientId: "", groups: null } });
    expect(house.verifier.holds(caller.identity)).toBe(true);
  });

  test("checks issuer and audience when they are configured", async () => {
    using house = await openHouse({ secret, issuer: "app", audience: "sealflow" });
    const good = { iss: "app", aud: ["x", "sealflow"] };
    expect(await call(house, await signShared(good))).toMatchObject({ owner: "me" });
    await refusal(house, await signShared({ ...good, iss: "other" }));
    await refusal(house, await signShared({ ...good, aud: "other" }));
    await refusal(house, await signShared({}));
  });

  test("serves HS256 alone, needs exp, and has 32 bytes at least", async () => {
    using house = await openHouse({ secret });
    await refusal(house, await signShared({}, "HS512"));
    await refusal(house, await signShared({ exp: undefined }));
    const error = await failureOf(() => openHouse({ secret: "x".repeat(31) }));
    expect(error.reason).toBe("VALIDATION_ERROR");
  });
});

describe("what a token may", () => {
  test("bound to an agent, it speaks for that agent alone", async () => {
    using house = await openHouse();
    const token = await sign(house, { agent_id: "laptop" });
    expect(await call(house, token, "laptop")).toMatchObject({ agentId: "laptop" });
    for (const _ of ["verified", "cached"]) {
      const error = await failureOf(() => call(house, token, "phone"));
      expect(error.reason).toBe("FORBIDDEN");
    }
  });

  test.each([
    [undefined, ["auth", "sync", "workflows", "agents", "executions", "tasks"]],
    ["openid sync", ["auth", "sync", "workflows", "agents", "executions", "tasks"]],
    ["sealflow:sync", ["sync"]],
    ["sealflow:workflows", ["workflows", "executions"]],
    ["sealflow:agents sealflow:tasks", ["agents", "executions", "tasks"]],
    ["openid sealflow:executions", ["executions"]],
    ["sealflow:nonsense", []],
    ["sealflow:", []],
    ["sealflow:constructor", []],
  ])("scope %j opens %j", async (scope, open) => {
    using house = await openHouse();
    const caller = await call(house, await sign(house, { scope }));
    const groups = ["auth", "sync", "workflows", "agents", "executions", "tasks"] as const;
    for (const group of groups) {
      if (open.includes(group)) requireGroup(caller, group);
      else {
        const error = await failureOf(() => requireGroup(caller, group));
        expect(error.reason).toBe("FORBIDDEN");
      }
    }
  });
});

test("an issued token carries what it was made for", async () => {
  using house = await openHouse();
  const { token, expiresAtMs } = await issueToken(house.keys.active(), {
    sub: "me",
    agentId: "laptop",
    scope: "sealflow:sync",
    ttlSeconds: 90,
    nowMs: house.nowMs(),
  });
  expect(expiresAtMs).toBe(house.nowMs() + 90_000);
  const { identity } = await call(house, token);
  expect(identity).toEqual({
    owner: "me",
    boundAgentId: "laptop",
    groups: new Set(["sync"]),
    clientId: "",
    keyId: house.keys.active().kid,
    expiresAtMs,
  });
});
