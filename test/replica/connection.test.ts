import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, expect, test } from "vitest";
import { reasonOf } from "../../src/client/client.ts";
import { startTestServer, type TestServer, unlimited } from "../doors/server.ts";
import { type Device, openDevice } from "./device.ts";

const open: AsyncDisposable[] = [];
afterEach(async () => {
  for (const part of open.splice(0).reverse()) await part[Symbol.asyncDispose]();
});

async function start(settings?: Parameters<typeof startTestServer>[0]): Promise<TestServer> {
  const server = await startTestServer(settings);
  open.push(server);
  return server;
}

async function device(options: Parameters<typeof openDevice>[0]): Promise<Device> {
  const opened = await openDevice(options);
  open.push(opened);
  return opened;
}

const note = (entityId: string) => ({ type: "note", entityId, data: "text" });

test("a restart of the server is a pause: nothing is missed, nothing comes twice", async () => {
  const server = await start();
  const laptop = await device({ server, id: "laptop" });
  const phone = await device({ server, id: "phone" });
  for (const each of [laptop, phone]) await each.next("upToDate");
  await laptop.replica.push(note("n1"));
  await phone.next("record");
  await server.restart();
  const { error, delayMs } = await phone.next("offline");
  expect(String(error)).toContain("it stops");
  expect(delayMs).toBeLessThanOrEqual(500);
  await laptop.replica.push(note("n2"));
  expect((await phone.next("record")).record.entityId).toBe("n2");
  expect(phone.events.filter(({ kind }) => kind === "record")).toHaveLength(2);
});

test("a token that expires is replaced, and nothing is missed", async () => {
  const server = await start();
  const laptop = await device({ server, id: "laptop" });
  const phone = await device({
    server,
    id: "phone",
    token: () => server.token({ sub: "me", ttlSeconds: 2 }),
  });
  await phone.next("upToDate");
  expect(String((await phone.next("offline")).error)).toContain("the token has expired");
  await laptop.replica.push(note("n1"));
  expect((await phone.next("record")).record.entityId).toBe("n1");
});

test("a token that is refused is replaced at once", async () => {
  const server = await start();
  let held = "stale";
  const phone = await device({
    server,
    id: "phone",
    async token(refused) {
      if (refused === held) held = await server.token({ sub: "me" });
      return held;
    },
  });
  await phone.next("upToDate");
  expect(phone.events.map(({ kind }) => kind)).toEqual(["online", "upToDate"]);
});

test("what is refused for good is asked for seldom", async () => {
  const server = await start();
  const phone = await device({ server, id: "phone", token: "no token", random: () => 0.9 });
  const { error, delayMs } = await phone.next("offline");
  expect(reasonOf(error)?.reason).toBe("UNAUTHORIZED");
  expect(delayMs).toBe(27_000);
});

test("a rate limit is waited out, as long as the server says", async () => {
  const server = await start({ rateLimits: { ...unlimited, sync: 3 } });
  const phone = await device({ server, id: "phone" });
  await phone.next("upToDate");
  await phone.replica.push(note("n1"));
  await phone.next("pushed");
  await phone.replica.push(note("n2"));
  const { error, delayMs } = await phone.next("retrying");
  expect(reasonOf(error)?.reason).toBe("RATE_LIMITED");
  expect(delayMs).toBeGreaterThan(reasonOf(error)?.retryAfterMs ?? Number.POSITIVE_INFINITY);
  const { length } = phone.line.calls;
  await sleep(300);
  expect(phone.line.calls).toHaveLength(length);
  expect(phone.events.map(({ kind }) => kind)).not.toContain("offline");
});

test("many changes made offline go out in few calls", async () => {
  const server = await start();
  const phone = await device({ server, id: "phone", isStarted: false });
  for (let i = 0; i < 500; i += 1) await phone.replica.push(note(`n${i}`));
  phone.replica.start();
  for (let i = 0; i < 500; i += 1) await phone.next("pushed");
  expect(phone.line.calls.filter((path) => path.endsWith("/PushState"))).toHaveLength(3);
});

test("pauses grow while the server is away, and end with stop", async () => {
  const server = await start();
  const phone = await device({ server, id: "phone", isStarted: false, random: () => 0.1 });
  phone.line.cut();
  phone.replica.start();
  const delays: number[] = [];
  for (let i = 0; i < 4; i += 1) delays.push((await phone.next("offline")).delayMs);
  expect(delays).toEqual([50, 100, 200, 400]);
  await phone.replica.stop();
  const { length } = phone.events;
  await sleep(600);
  expect(phone.events).toHaveLength(length);
});
