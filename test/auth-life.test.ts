import { describe, expect, test, vi } from "vitest";
import { isForgery } from "../src/calls/auth/authenticate.ts";
import { openKeyRing } from "../src/calls/auth/key-ring.ts";
import { rotateSigningKeys } from "../src/calls/auth/signing-keys.ts";
import { createTokenCache } from "../src/calls/auth/token-cache.ts";
import { createVerifier } from "../src/calls/auth/verifier.ts";
import { createIdentityWatch } from "../src/calls/auth/watch.ts";
import { failureOf, type House, openHouse, pollMs, sign } from "./auth-fixture.ts";

function call(house: House, token: string) {
  return house.authenticate({ authorization: `Bearer ${token}`, agentId: "laptop" });
}

async function expectRefusal(house: House, token: string) {
  const error = await failureOf(() => call(house, token));
  expect(error.reason).toBe("UNAUTHORIZED");
  expect(isForgery(error)).toBe(false);
}

describe("a verified token is remembered", () => {
  test("but not beyond its client", async () => {
    using house = await openHouse();
    const { client } = house.store.plant();
    await house.clients.refresh();
    const token = await sign(house, { client_id: client.id });
    const { identity } = await call(house, token);
    expect(call(house, token)).toMatchObject({ identity: { clientId: client.id } });
    await house.store.removeClient(client.id);
    await vi.waitFor(() => expect(house.clients.has(client.id)).toBe(false));
    await expectRefusal(house, token);
    expect(house.verifier.holds(identity)).toBe(false);
  });

  test("a token of a client that never was is refused", async () => {
    using house = await openHouse();
    await expectRefusal(house, await sign(house, { client_id: "cl_nobody" }));
  });

  test("for 5 min, and never past its exp", async () => {
    using house = await openHouse();
    const begin = house.clock.nowMs;
    const long = await sign(house, { exp: begin / 1000 + 3600 });
    const short = await sign(house, { exp: begin / 1000 + 60 });
    await Promise.all([call(house, long), call(house, short)]);
    house.clock.nowMs = begin + 59_000;
    expect(call(house, short)).not.toBeInstanceOf(Promise);
    house.clock.nowMs = begin + 60_000;
    expect(call(house, short)).toBeInstanceOf(Promise);
    house.clock.nowMs = begin + 299_000;
    expect(call(house, long)).not.toBeInstanceOf(Promise);
    house.clock.nowMs = begin + 300_000;
    expect(call(house, long)).toBeInstanceOf(Promise);
  });

  test("in bounded space: the least lately used makes room", async () => {
    using house = await openHouse();
    using verifier = createVerifier({ ...house, cachedTokensMax: 2 });
    const tokens = await Promise.all(["a", "b", "c"].map((sub) => sign(house, { sub })));
    const [a = "", b = "", c = ""] = tokens;
    await verifier.verify(a);
    await verifier.verify(b);
    expect(verifier.verify(a)).toMatchObject({ owner: "a" });
    await verifier.verify(c);
    expect(verifier.verify(a)).toMatchObject({ owner: "a" });
    expect(verifier.verify(b)).toBeInstanceOf(Promise);
  });

  test("and not when it was verified while the keys changed", async () => {
    using house = await openHouse();
    const cache = createTokenCache(10, house.nowMs);
    const { identity } = await call(house, await sign(house));
    const filled = cache.fill("digest", async () => identity);
    cache.clear();
    expect(await filled).toBe(identity);
    expect(cache.get("digest")).toBeUndefined();
  });

  test("once: calls that come together share a verification, and its failure", async () => {
    using house = await openHouse();
    const token = await sign(house);
    expect(house.verifier.verify(token)).toEqual(house.verifier.verify(token));
    const [first, second] = await Promise.all([call(house, token), call(house, token)]);
    expect(first.identity).toBe(second.identity);
    const results = await Promise.allSettled(["a.b.c", "a.b.c"].map((bad) => call(house, bad)));
    expect(results.map((result) => result.status)).toEqual(["rejected", "rejected"]);
  });
});

describe("the end of an identity is told", () => {
  async function watched(house: House, claims = {}) {
    const identities = createIdentityWatch({ ...house, pollMs });
    const ended = vi.fn<(reason: string) => void>();
    const { identity } = await call(house, await sign(house, claims));
    const watch = identities.watch(identity, ended);
    return { ended, watch, [Symbol.dispose]: () => identities[Symbol.dispose]() };
  }
  const pause = () => new Promise((resolve) => setTimeout(resolve, 4 * pollMs));

  test("when its token expires, once, however long that takes", async () => {
    using house = await openHouse();
    const days = 60 * 86_400_000;
    using it = await watched(house, { exp: (house.clock.nowMs + days) / 1000 });
    house.clock.nowMs += days - 1;
    await pause();
    expect(it.ended).not.toHaveBeenCalled();
    house.clock.nowMs += 1;
    await vi.waitFor(() => expect(it.ended).toHaveBeenCalledWith("expired"));
    await pause();
    expect(it.ended).toHaveBeenCalledTimes(1);
  });

  test("after the leeway, for a token that is accepted only by it", async () => {
    using house = await openHouse();
    using it = await watched(house, { exp: house.clock.nowMs / 1000 - 1 });
    await pause();
    expect(it.ended).not.toHaveBeenCalled();
    house.clock.nowMs += 29_000;
    await vi.waitFor(() => expect(it.ended).toHaveBeenCalledWith("expired"));
  });

  test("when its client is removed by another process", async () => {
    using house = await openHouse();
    const { client } = house.store.plant();
    await house.clients.refresh();
    using it = await watched(house, { client_id: client.id });
    await pause();
    expect(it.ended).not.toHaveBeenCalled();
    await house.store.removeClient(client.id);
    await vi.waitFor(() => expect(it.ended).toHaveBeenCalledWith("revoked"));
  });

  test("when its key is dropped, but not when it is retired", async () => {
    using house = await openHouse();
    using it = await watched(house);
    await rotateSigningKeys(house.dataDir, { dropOld: false, nowMs: house.nowMs() });
    await house.keys.refresh();
    await pause();
    expect(it.ended).not.toHaveBeenCalled();
    await rotateSigningKeys(house.dataDir, { dropOld: true, nowMs: house.nowMs() });
    await vi.waitFor(() => expect(it.ended).toHaveBeenCalledWith("revoked"));
  });

  test("within 1 s, with the server's own pauses between its looks", async () => {
    using house = await openHouse();
    using keys = await openKeyRing(house.dataDir, house);
    using verifier = createVerifier({ ...house, keys });
    using identities = createIdentityWatch({ verifier, nowMs: house.nowMs });
    const identity = await verifier.verify(await sign(house));
    const ended = new Promise((resolve) => identities.watch(identity, resolve));
    await rotateSigningKeys(house.dataDir, { dropOld: true, nowMs: house.nowMs() });
    const late = new Promise((resolve) => setTimeout(resolve, 1000, "late"));
    expect(await Promise.race([ended, late])).toBe("revoked");
  });

  test("but not to who has stopped watching", async () => {
    using house = await openHouse();
    using it = await watched(house);
    it.watch[Symbol.dispose]();
    house.clock.nowMs += 86_400_000;
    await pause();
    expect(it.ended).not.toHaveBeenCalled();
  });
});
