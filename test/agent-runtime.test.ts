import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { FakeAgentService, refusal } from "./fake-agent-service.ts";
import { endless, sleep, start, unavailable, until } from "./running-agent.ts";

describe("an agent", () => {
  test("registers, takes a task, reports its output", async () => {
    const agent = start((task) => ({ got: task.input }), {
      id: "counter",
      type: "script",
      capabilities: ["text"],
    });
    agent.server.offer({ id: "ex_1", name: "Count", workflowId: "wf_1", input: '{"a":[1]}' });
    await until(() => agent.server.completed.length === 1);
    await agent.stop();
    expect(agent.server.registrations).toMatchObject([
      { id: "counter", type: "script", capabilities: ["text"], isPublic: false },
    ]);
    expect(agent.server.completed).toMatchObject([
      { taskId: "ex_1", leaseToken: "ex_1-token", output: '{"got":{"a":[1]}}' },
    ]);
    expect(agent.kinds()).toEqual(["registered", "granted", "completed"]);
    expect(agent.events[1]).toMatchObject({ taskId: "ex_1", workflowId: "wf_1", name: "Count" });
  });

  test("hands its handler the whole task", async () => {
    const seen: unknown[] = [];
    const agent = start((task) => void seen.push(task));
    agent.server.offer({
      id: "ex_1",
      attempt: 3,
      encryptedData: "opaque",
      encryptionKey: "some key",
      progress: "half way",
    });
    await until(() => agent.server.completed.length === 1);
    await agent.stop();
    expect(seen).toMatchObject([
      {
        id: "ex_1",
        workflowId: undefined,
        attempt: 3,
        input: {},
        payload: undefined,
        encryptedData: "opaque",
        encryptionKey: "some key",
        progress: "half way",
      },
    ]);
    expect(agent.server.completed[0]?.output).toBe("{}");
  });

  test("does as many tasks at a time as it may", async () => {
    let now = 0;
    let most = 0;
    const agent = start(
      async () => {
        now += 1;
        most = Math.max(most, now);
        await sleep(30);
        now -= 1;
      },
      { concurrency: 3 },
    );
    for (let n = 0; n < 9; n += 1) agent.server.offer({ id: `ex_${n}` });
    await until(() => agent.server.completed.length === 9);
    await agent.stop();
    expect(most).toBe(3);
    expect(agent.server.polls.every(({ maxTasks }) => (maxTasks ?? 0) <= 3)).toBe(true);
  });

  test.each([{ concurrency: 0 }, { concurrency: 501 }, { leaseMs: 4999 }, { graceMs: -1 }])(
    "refuses options that cannot be: %j",
    async (options) => {
      await expect(start(endless, options).ended).rejects.toThrow(RangeError);
    },
  );
});

describe("a lost answer", () => {
  test("of a poll is asked for again with the same poll id", async () => {
    const agent = start(() => "done");
    agent.server.loseNextPollAnswer();
    agent.server.offer({ id: "ex_1" });
    await until(() => agent.server.completed.length === 1);
    await until(() => agent.server.polls.length === 3);
    await agent.stop();
    const ids = agent.server.polls.map(({ pollId }) => pollId);
    expect(ids[0]).not.toBe("");
    expect(ids[1]).toBe(ids[0]);
    expect(ids[2]).not.toBe(ids[0]);
    expect(agent.kinds().filter((kind) => kind === "granted")).toHaveLength(1);
  });

  test("of a report is asked for again", async () => {
    const server = new FakeAgentService();
    server.failNext("complete", unavailable(), unavailable());
    const agent = start(() => "done", { server });
    server.offer({ id: "ex_1" });
    await until(() => server.completed.length === 1);
    await agent.stop();
    expect(agent.kinds()).toEqual(["registered", "granted", "retrying", "retrying", "completed"]);
  });

  test("of a report may say that the attempt is over", async () => {
    const server = new FakeAgentService();
    server.failNext("complete", unavailable(), refusal(Code.Aborted, "LEASE_LOST"));
    const agent = start(() => "done", { server });
    server.offer({ id: "ex_1" });
    await until(() => agent.kinds().includes("lost"));
    await agent.stop();
    expect(server.completed).toEqual([]);
  });
});

describe("registration", () => {
  test("is tried until it works", async () => {
    const server = new FakeAgentService();
    server.failNext("register", unavailable(), new ConnectError("reset", Code.Unknown));
    const agent = start(() => "done", { server });
    server.offer({ id: "ex_1" });
    await until(() => server.completed.length === 1);
    await agent.stop();
    expect(agent.kinds().slice(0, 3)).toEqual(["retrying", "retrying", "registered"]);
  });

  test("is done again when the server does not know the agent any more", async () => {
    const agent = start(() => "done");
    await until(() => agent.server.polls.length === 1);
    agent.server.isRegistered = false;
    agent.server.offer({ id: "ex_1" });
    await until(() => agent.server.completed.length === 1);
    await agent.stop();
    expect(agent.server.registrations).toHaveLength(2);
    expect(agent.events.filter(({ kind }) => kind === "registered")).toEqual([
      { kind: "registered", again: false },
      { kind: "registered", again: true },
    ]);
  });

  test("is done again too while every place is taken", async () => {
    const agent = start(endless, { graceMs: 0 });
    agent.server.offer({ id: "ex_1" });
    await until(() => agent.kinds().includes("granted"));
    agent.server.isRegistered = false;
    await until(() => agent.server.registrations.length === 2);
    await agent.stop();
  });

  test.each([
    refusal(Code.PermissionDenied, "FORBIDDEN"),
    refusal(Code.AlreadyExists, "AGENT_ID_TAKEN"),
    refusal(Code.Unauthenticated, "UNAUTHORIZED"),
    refusal(Code.InvalidArgument, "VALIDATION_ERROR"),
  ])("that is refused for good ends the agent", async (error) => {
    const server = new FakeAgentService();
    server.failNext("register", error);
    await expect(start(endless, { server }).ended).rejects.toMatchObject({ code: error.code });
    expect(server.polls).toEqual([]);
  });

  test("is not even tried when the agent is to stop already", async () => {
    const agent = start(endless, { signal: AbortSignal.abort() });
    await agent.ended;
    expect(agent.server.registrations).toEqual([]);
  });
});

describe("an agent that is to stop", () => {
  test("ends its poll at once", async () => {
    const agent = start(endless);
    await until(() => agent.server.polls.length === 1);
    const stoppedAtMs = performance.now();
    await agent.stop();
    expect(performance.now() - stoppedAtMs).toBeLessThan(500);
    expect(agent.server.polls).toHaveLength(1);
  });

  test("lets its handlers finish, and takes nothing new", async () => {
    const agent = start(async () => {
      await sleep(200);
      return "finished";
    });
    agent.server.offer({ id: "ex_1" });
    await until(() => agent.kinds().includes("granted"));
    agent.server.offer({ id: "ex_2" });
    await agent.stop();
    expect(agent.server.completed).toMatchObject([{ taskId: "ex_1", output: '"finished"' }]);
    expect(agent.kinds()).toEqual(["registered", "granted", "draining", "completed"]);
  });

  test("gives back what is not finished after the grace", async () => {
    const agent = start(endless, { graceMs: 100 });
    agent.server.offer({ id: "ex_1" });
    await until(() => agent.kinds().includes("granted"));
    await agent.stop();
    expect(agent.server.released).toMatchObject([{ taskId: "ex_1", leaseToken: "ex_1-token" }]);
    expect(agent.server.failed).toEqual([]);
    expect(agent.kinds()).toEqual(["registered", "granted", "draining", "stopping", "released"]);
  });

  test("ends with the error when its token is refused while it works", async () => {
    const server = new FakeAgentService();
    server.failNext("poll", refusal(Code.Unauthenticated, "UNAUTHORIZED"));
    const agent = start(endless, { server });
    await expect(agent.ended).rejects.toMatchObject({ code: Code.Unauthenticated });
  });
});
