import { decodeJwt } from "jose";
import { describe, expect, test, vi } from "vitest";
import { createClientRegistry, newClient } from "../src/calls/auth/clients.ts";
import { scopeOfGroups } from "../src/calls/auth/scope.ts";
import { grantToken } from "../src/calls/auth/token-endpoint.ts";
import { readTokenRequest, tokenRequestBytesMax } from "../src/calls/auth/token-request.ts";
import { failureOf, type House, memoryClients, openHouse, pollMs } from "./auth-fixture.ts";

const form = "application/x-www-form-urlencoded";
const grant_type = "client_credentials";

interface Credentials {
  readonly id: string;
  readonly secret: string;
}

function basic(id: string, secret: string): string {
  return `Basic ${Buffer.from(`${id}:${secret}`).toString("base64")}`;
}

const forms = {
  form: ({ id, secret }: Credentials) => ({
    contentType: `${form}; charset=UTF-8`,
    body: new URLSearchParams({ grant_type, client_id: id, client_secret: secret }).toString(),
  }),
  JSON: ({ id, secret }: Credentials) => ({
    contentType: "application/json",
    body: JSON.stringify({ grant_type, client_id: id, client_secret: secret }),
  }),
  "Basic and a form": ({ id, secret }: Credentials) => ({
    contentType: form,
    authorization: basic(id, secret),
    body: "grant_type=client_credentials",
  }),
  "Basic and JSON": ({ id, secret }: Credentials) => ({
    contentType: "application/json",
    authorization: basic(id, secret).replace("Basic", "basic"),
    body: JSON.stringify({ grant_type, client_id: id }),
  }),
  "Basic with everything encoded": ({ id, secret }: Credentials) => ({
    contentType: form,
    authorization: basic(encodeAll(id), encodeAll(secret)),
    body: "grant_type=client_credentials",
  }),
};

function encodeAll(text: string): string {
  return [...text].map((char) => `%${char.charCodeAt(0).toString(16)}`).join("");
}

async function openWithClient(draft = {}) {
  const house = await openHouse();
  const { client, secret } = house.store.plant(draft);
  await house.clients.refresh();
  return { house, client, secret, credentials: { id: client.id, secret } };
}

function grant(house: House, credentials: Credentials, scope = "") {
  const request = readTokenRequest(forms.JSON(credentials));
  return grantToken({ ...request, scope }, house);
}

describe("a client gets a token", () => {
  test.each(Object.entries(forms))("by %s", async (_, shape) => {
    const { house, client, credentials } = await openWithClient({ owner: "alice" });
    using _house = house;
    const request = readTokenRequest(shape(credentials));
    expect(request).toEqual({ clientId: client.id, clientSecret: credentials.secret, scope: "" });
    const answer = await grantToken(request, house);
    expect(answer).toEqual({
      access_token: expect.any(String),
      token_type: "Bearer",
      expires_in: 3600,
    });
    const identity = await house.verifier.verify(answer.access_token);
    expect(identity).toMatchObject({ owner: "alice", clientId: client.id, groups: null });
    expect(identity.expiresAtMs).toBe(house.nowMs() + 3_600_000);
  });

  test("bound and narrowed as the client is", async () => {
    const scope = scopeOfGroups("agents,tasks");
    const { house, credentials } = await openWithClient({ agentId: "laptop", scope });
    using _house = house;
    const { access_token } = await grant(house, credentials);
    expect(decodeJwt(access_token)).toMatchObject({ agent_id: "laptop", scope });
  });

  test("narrowed as it asks, and never wider than it is", async () => {
    const { house, credentials } = await openWithClient({ scope: scopeOfGroups("workflows") });
    using _house = house;
    const narrow = await grant(house, credentials, "sealflow:executions");
    expect(decodeJwt(narrow.access_token).scope).toBe("sealflow:executions");
    for (const scope of ["sealflow:sync", "sealflow:workflows sealflow:agents", "openid"]) {
      const error = await failureOf(() => grant(house, credentials, scope));
      expect(error.reason).toBe("VALIDATION_ERROR");
    }
  });
});

describe("a client is refused", () => {
  test("with a wrong secret, an unknown id, and once it was removed", async () => {
    const { house, client, secret, credentials } = await openWithClient();
    using _house = house;
    const wrong = [
      { id: client.id, secret: `${secret}x` },
      { id: client.id, secret: client.secretHash },
      { id: `${client.id}x`, secret },
      { id: "ci", secret },
    ];
    for (const attempt of wrong) {
      const error = await failureOf(() => grant(house, attempt));
      expect(error.reason).toBe("UNAUTHORIZED");
      expect(error.facts.headers).toEqual({ "www-authenticate": 'Basic realm="sealflow"' });
    }
    await grant(house, credentials);
    await house.store.removeClient(client.id);
    await vi.waitFor(() => expect(house.clients.has(client.id)).toBe(false));
    expect((await failureOf(() => grant(house, credentials))).reason).toBe("UNAUTHORIZED");
  });

  const json = (body: unknown) => ({
    contentType: "application/json",
    body: JSON.stringify(body),
  });
  const client_id = "cl_x";
  const client_secret = "y";

  test.each([
    ["no credentials", json({ grant_type }), "UNAUTHORIZED"],
    ["no secret", json({ grant_type, client_id }), "UNAUTHORIZED"],
    ["an empty secret", json({ grant_type, client_id, client_secret: "" }), "UNAUTHORIZED"],
    ["a long id", json({ grant_type, client_id: "a".repeat(600), client_secret }), "UNAUTHORIZED"],
    ["NUL in its id", json({ grant_type, client_id: "a\0", client_secret }), "UNAUTHORIZED"],
    [
      "Basic without colon",
      { ...json({ grant_type }), authorization: "Basic YWI=" },
      "UNAUTHORIZED",
    ],
    ["Basic that is empty", { ...json({ grant_type }), authorization: "Basic" }, "UNAUTHORIZED"],
    [
      "Basic badly encoded",
      { ...json({ grant_type }), authorization: basic("%", "y") },
      "UNAUTHORIZED",
    ],
    ["only a bearer", { ...json({ grant_type }), authorization: "Bearer a.b.c" }, "UNAUTHORIZED"],
    ["an absent body", { body: "", authorization: basic("a", "b") }, "VALIDATION_ERROR"],
    ["no grant type", json({ client_id, client_secret }), "VALIDATION_ERROR"],
    [
      "another grant",
      json({ grant_type: "password", client_id, client_secret }),
      "VALIDATION_ERROR",
    ],
    ["broken JSON", { contentType: "application/json", body: "{" }, "VALIDATION_ERROR"],
    ["a list", json([]), "VALIDATION_ERROR"],
    ["a number as id", json({ grant_type, client_id: 1, client_secret }), "VALIDATION_ERROR"],
    [
      "a secret twice",
      { ...json({ grant_type, client_secret }), authorization: basic("a", "b") },
      "VALIDATION_ERROR",
    ],
    [
      "two ids",
      { ...json({ grant_type, client_id }), authorization: basic("a", "b") },
      "VALIDATION_ERROR",
    ],
    [
      "a parameter twice",
      { contentType: form, body: `grant_type=${grant_type}&client_id=a&client_id=b` },
      "VALIDATION_ERROR",
    ],
    ["text", { contentType: "text/plain", body: "x" }, "UNSUPPORTED_MEDIA_TYPE"],
    ["no content type", { body: "grant_type=x" }, "UNSUPPORTED_MEDIA_TYPE"],
    [
      "too much",
      { contentType: form, body: "a".repeat(tokenRequestBytesMax + 1) },
      "PAYLOAD_TOO_LARGE",
    ],
  ])("that sends %s", async (_, raw, reason) => {
    expect((await failureOf(() => readTokenRequest(raw))).reason).toBe(reason);
  });

  test("an old bearer beside good credentials does no harm", () => {
    const raw = { ...forms.JSON({ id: "a", secret: "b" }), authorization: "Bearer a.b.c" };
    expect(readTokenRequest(raw)).toMatchObject({ clientId: "a", clientSecret: "b" });
  });
});

describe("clients", () => {
  test("are new each time, and their secret is not kept", () => {
    const draft = { name: "ci", owner: "me", agentId: "", scope: "", nowUs: 7 };
    const [one, two] = [newClient(draft), newClient(draft)];
    expect(one.client.id).toMatch(/^cl_[\w-]{22}$/);
    expect(one.secret).toMatch(/^sfs_[\w-]{43}$/);
    expect(one.client.id).not.toBe(two.client.id);
    expect(one.secret).not.toBe(two.secret);
    expect(JSON.stringify(one.client)).not.toContain(one.secret.slice(4));
    expect(one.client).toMatchObject({ name: "ci", owner: "me", createdUs: 7 });
  });

  test.each([{ name: "" }, { name: "a\0" }, { owner: "" }, { agentId: "register" }])(
    "are refused with %j",
    async (part) => {
      const draft = { name: "ci", owner: "me", agentId: "", scope: "", nowUs: 7, ...part };
      expect((await failureOf(() => newClient(draft))).reason).toBe("VALIDATION_ERROR");
    },
  );

  test("that another process adds are seen within 1 s, also after a failed look", async () => {
    const store = memoryClients();
    const broken = vi.spyOn(store, "listClients");
    const onFailure = vi.fn();
    using clients = await createClientRegistry(store, { pollMs, onFailure });
    broken.mockRejectedValueOnce(new Error("locked"));
    const { client, secret } = store.plant();
    await vi.waitFor(() => expect(clients.has(client.id)).toBe(true));
    expect(onFailure).toHaveBeenCalledTimes(1);
    expect(clients.verifySecret(client.id, secret)).toMatchObject({ id: client.id });
    expect(clients.verifySecret(client.id, "wrong")).toBeNull();
  });
});

test.each([
  ["agents,tasks", "sealflow:agents sealflow:tasks"],
  ["sealflow:sync sync", "sealflow:sync"],
  ["", ""],
])("the groups %j are the scope %j", (list, scope) => expect(scopeOfGroups(list)).toBe(scope));

test("an unknown group is refused", async () => {
  expect((await failureOf(() => scopeOfGroups("sync,nonsense"))).reason).toBe("VALIDATION_ERROR");
});
