import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import {
  type AgentEvent,
  type AgentOptions,
  runAgent,
  TaskAbortedError,
  TaskFailedError,
  type TaskHandler,
} from "../src/client/agent.ts";
import { isSealed, newKey, seal, unseal } from "../src/client/crypto.ts";
import { FakeAgentService, refusal } from "./fake-agent-service.ts";

const unavailable = () => new ConnectError("away", Code.Unavailable);

interface Running {
  readonly server: FakeAgentService;
  readonly events: AgentEvent[];
  readonly kinds: () => string[];
  /** Drains it and waits for its end. */
  stop(): Promise<void>;
  readonly ended: Promise<void>;
}

type Settings = Partial<Omit<AgentOptions, "server" | "token" | "credentials" | "transport">> & {
  readonly server?: FakeAgentService;
};

function start(
  handler: TaskHandler,
  { server = new FakeAgentService(), ...settings }: Settings = {},
): Running {
  const events: AgentEvent[] = [];
  const drain = new AbortController();
  const options: AgentOptions = {
    server: "http://fake",
    token: "token",
    id: "worker",
    transport: server.transport,
    random: () => 0,
    onEvent: (event) => events.push(event),
    signal: drain.signal,
    ...settings,
  };
  const ended = runAgent(options, handler);
  // A test that awaits it later must not fail before.
  ended.catch(() => {});
  const stop = () => {
    drain.abort();
    return ended;
  };
  return { server, events, kinds: () => events.map(({ kind }) => kind), stop, ended };
}

async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await sleep(5);
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Works until it is told to stop. */
const endless: TaskHandler = (_task, signal) =>
  new Promise((_resolve, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason));
  });

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

describe("a handler that throws", () => {
  test("is a failure with its text", async () => {
    const agent = start(() => {
      throw new Error("no such file\0");
    });
    agent.server.offer({ id: "ex_1" });
    await until(() => agent.server.failed.length === 1);
    await agent.stop();
    expect(agent.server.failed).toMatchObject([
      {
        taskId: "ex_1",
        leaseToken: "ex_1-token",
        error: { code: "AGENT_ERROR", message: "no such file\uFFFD" },
        retryable: true,
      },
    ]);
    expect(agent.kinds()).toEqual(["registered", "granted", "failed"]);
  });

  test("says more with a TaskFailedError", async () => {
    const agent = start(() => {
      throw new TaskFailedError("busy", { code: "BUSY", retryable: false, retryAfterMs: 1500 });
    });
    agent.server.offer({ id: "ex_1" });
    await until(() => agent.server.failed.length === 1);
    await agent.stop();
    expect(agent.server.failed).toMatchObject([
      {
        error: { code: "BUSY", message: "busy" },
        retryable: false,
        retryAfter: { seconds: 1n, nanos: 500_000_000 },
      },
    ]);
  });

  test.each(["AGENT_LOST", "not a code", "", "x".repeat(65)])(
    "cannot use %j as its code",
    async (code) => {
      const agent = start(() => {
        throw new TaskFailedError("failed", { code });
      });
      agent.server.offer({ id: "ex_1" });
      await until(() => agent.server.failed.length === 1);
      await agent.stop();
      expect(agent.server.failed[0]?.error?.code).toBe("AGENT_ERROR");
    },
  );

  test("has its text cut at 4 KiB, between characters", async () => {
    const agent = start(() => {
      throw new Error("ü".repeat(5000));
    });
    agent.server.offer({ id: "ex_1" });
    await until(() => agent.server.failed.length === 1);
    await agent.stop();
    const message = agent.server.failed[0]?.error?.message ?? "";
    expect(message).toMatch(/^ü{2040,2048}$/);
  });
});

describe("an output", () => {
  test.each([
    ["x".repeat(1024 * 1024), "OUTPUT_TOO_LARGE"],
    [1n, "OUTPUT_NOT_JSON"],
    [() => 1, "OUTPUT_NOT_JSON"],
  ])("that cannot be is a failure for good", async (output, code) => {
    const agent = start(() => output);
    agent.server.offer({ id: "ex_1" });
    await until(() => agent.server.failed.length === 1);
    await agent.stop();
    expect(agent.server.failed).toMatchObject([{ error: { code }, retryable: false }]);
    expect(agent.server.completed).toEqual([]);
  });

  test("that the server refuses is a failure for good", async () => {
    const server = new FakeAgentService();
    server.failNext("complete", refusal(Code.InvalidArgument, "VALIDATION_ERROR"));
    const agent = start(() => "\0", { server });
    server.offer({ id: "ex_1" });
    await until(() => server.failed.length === 1);
    await agent.stop();
    expect(server.failed).toMatchObject([{ error: { code: "OUTPUT_REFUSED" }, retryable: false }]);
  });
});

describe("a lease", () => {
  test("is kept while the handler works", async () => {
    const server = new FakeAgentService();
    server.leaseMs = 600;
    const agent = start(() => sleep(1500), { server });
    server.offer({ id: "ex_1" });
    await until(() => server.completed.length === 1);
    await agent.stop();
    expect(agent.kinds()).toEqual(["registered", "granted", "completed"]);
    expect(server.beats.length).toBeGreaterThanOrEqual(3);
    expect(server.beats.every(({ leaseToken }) => leaseToken === "ex_1-token")).toBe(true);
  });

  test("costs a short task no heartbeat", async () => {
    const agent = start(() => sleep(20));
    agent.server.offer({ id: "ex_1" });
    await until(() => agent.server.completed.length === 1);
    await sleep(300);
    await agent.stop();
    expect(agent.server.beats).toEqual([]);
  });

  test("that the server ends stops the handler, and nothing is reported", async () => {
    const reasons: unknown[] = [];
    const agent = start(async (_task, signal) => {
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      reasons.push(signal.reason);
      return "too late";
    });
    agent.server.offer({ id: "ex_1" });
    await until(() => agent.server.beats.length > 0);
    agent.server.endLease("ex_1");
    await until(() => agent.kinds().includes("lost"));
    await agent.stop();
    expect(reasons).toMatchObject([{ why: "lease_lost" }]);
    expect(reasons[0]).toBeInstanceOf(TaskAbortedError);
    expect(agent.server.completed).toEqual([]);
    expect(agent.server.failed).toEqual([]);
  });

  test("that runs out while the server is away stops the handler", async () => {
    const server = new FakeAgentService();
    server.leaseMs = 500;
    server.failNext("heartbeat", ...Array.from({ length: 20 }, unavailable));
    const agent = start(endless, { server });
    server.offer({ id: "ex_1" });
    await until(() => agent.kinds().includes("lost"));
    await agent.stop();
    expect(agent.events).toContainEqual({
      kind: "stopping",
      taskId: "ex_1",
      attempt: 1,
      why: "lease_lost",
    });
    expect(server.failed).toEqual([]);
  });

  test("survives heartbeats that fail for a while", async () => {
    const server = new FakeAgentService();
    server.leaseMs = 3000;
    server.failNext("heartbeat", unavailable(), unavailable());
    const agent = start(() => sleep(1200), { server });
    server.offer({ id: "ex_1" });
    await until(() => server.completed.length === 1);
    await agent.stop();
    expect(agent.kinds()).not.toContain("lost");
    expect(server.beats.length).toBeGreaterThan(0);
  });
});

describe("a cancel", () => {
  test("is heard at once and ends the task", async () => {
    const agent = start(endless);
    agent.server.offer({ id: "ex_1" });
    await until(() => agent.server.beats.length > 0);
    const askedAtMs = performance.now();
    agent.server.cancel("ex_1");
    await until(() => agent.server.failed.length === 1);
    expect(performance.now() - askedAtMs).toBeLessThan(1000);
    await agent.stop();
    expect(agent.server.failed).toMatchObject([{ error: { code: "CANCELLED" }, retryable: false }]);
    expect(agent.kinds()).toEqual(["registered", "granted", "stopping", "cancelled"]);
  });

  test("does not stop a result that comes all the same", async () => {
    const agent = start(async (_task, signal) => {
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      return "saved";
    });
    agent.server.offer({ id: "ex_1" });
    await until(() => agent.server.beats.length > 0);
    agent.server.cancel("ex_1");
    await until(() => agent.server.completed.length === 1);
    await agent.stop();
    expect(agent.server.completed[0]?.output).toBe('"saved"');
  });

  test("of one task leaves the others, and does not make the agent ask without pause", async () => {
    const agent = start(
      (task, signal) => (task.id === "ex_1" ? sleep(900) : endless(task, signal)),
      { concurrency: 2, graceMs: 0 },
    );
    agent.server.offer({ id: "ex_1" });
    agent.server.offer({ id: "ex_2" });
    await until(() => agent.server.beats.some(({ taskId }) => taskId === "ex_2"));
    agent.server.cancel("ex_1");
    await until(() => agent.server.completed.length === 1);
    expect(agent.server.beats.length).toBeLessThan(16);
    await agent.stop();
    expect(agent.server.released).toMatchObject([{ taskId: "ex_2" }]);
  });
});

describe("progress", () => {
  test("is stored before the promise resolves, text as it is and values as JSON", async () => {
    const stored: unknown[] = [];
    const agent = start(async (task) => {
      await task.heartbeat({ step: 2 });
      stored.push(agent.server.progress.get("ex_1"));
      await task.heartbeat("nearly there");
      stored.push(agent.server.progress.get("ex_1"));
    });
    agent.server.offer({ id: "ex_1" });
    await until(() => agent.server.completed.length === 1);
    await agent.stop();
    expect(stored).toEqual(['{"step":2}', "nearly there"]);
  });

  test("reported in a hurry is stored in its newest state", async () => {
    const agent = start(async (task) => {
      const all = [];
      for (let step = 0; step < 200; step += 1) {
        all.push(task.heartbeat({ step }));
        await sleep(2);
      }
      await Promise.all(all);
    });
    agent.server.offer({ id: "ex_1" });
    await until(() => agent.server.completed.length === 1);
    await agent.stop();
    expect(agent.server.progress.get("ex_1")).toBe('{"step":199}');
    expect(agent.server.beats.length).toBeLessThan(20);
  });

  test("of an earlier attempt is handed on", async () => {
    const seen: unknown[] = [];
    const agent = start((task) => void seen.push(task.progress));
    agent.server.offer({ id: "ex_1", attempt: 2, progress: '{"step":2}' });
    await until(() => agent.server.completed.length === 1);
    await agent.stop();
    expect(seen).toEqual([{ step: 2 }]);
  });

  test("above 32 KiB is refused at once", async () => {
    const errors: unknown[] = [];
    const agent = start((task) => {
      try {
        void task.heartbeat("x".repeat(32 * 1024 + 1));
      } catch (error) {
        errors.push(error);
      }
    });
    agent.server.offer({ id: "ex_1" });
    await until(() => agent.server.completed.length === 1);
    await agent.stop();
    expect(errors[0]).toBeInstanceOf(RangeError);
  });

  test("that cannot be stored costs neither the handler nor the lease", async () => {
    const server = new FakeAgentService();
    server.leaseMs = 4000;
    server.failNext("heartbeat", refusal(Code.InvalidArgument, "VALIDATION_ERROR"));
    const agent = start(
      async (task) => {
        await task.heartbeat("refused");
        await task.heartbeat("a NUL: \0");
      },
      { server },
    );
    server.offer({ id: "ex_1" });
    await until(() => server.completed.length === 1);
    await agent.stop();
    expect(server.progress.get("ex_1")).toBe("a NUL: \uFFFD");
  });

  test("does not keep a handler waiting once the attempt is over", async () => {
    const server = new FakeAgentService();
    server.leaseMs = 400;
    server.failNext("heartbeat", ...Array.from({ length: 20 }, unavailable));
    const agent = start((task) => task.heartbeat("never stored"), { server });
    server.offer({ id: "ex_1" });
    await until(() => agent.kinds().includes("completed"));
    await agent.stop();
    expect(server.progress.size).toBe(0);
  });
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

describe("sealed tasks", () => {
  test("are opened with the agent's key, and what goes back is sealed", async () => {
    const key = newKey();
    const seen: unknown[] = [];
    const agent = start(
      async (task) => {
        seen.push(task.input, task.payload, task.progress);
        await task.heartbeat({ step: 2 });
        return { words: 2 };
      },
      { key },
    );
    const encryptedData = await seal({ steps: 3 }, key);
    agent.server.offer({
      id: "ex_1",
      input: JSON.stringify(await seal({ text: "to be" }, key)),
      encryptedData,
      progress: await seal('{"step":1}', key),
    });
    await until(() => agent.server.completed.length === 1);
    await agent.stop();
    expect(seen).toEqual([{ text: "to be" }, { steps: 3 }, { step: 1 }]);
    const output: unknown = JSON.parse(agent.server.completed[0]?.output ?? "");
    expect(await unseal(String(output), key)).toEqual({ words: 2 });
    expect(await unseal(agent.server.progress.get("ex_1") ?? "", key)).toBe('{"step":2}');
  });

  test("are opened with the workflow's key where that fits", async () => {
    const encryptionKey = newKey();
    const encryptedData = await seal("recipe", encryptionKey);
    const seen: unknown[] = [];
    const agent = start((task) => void seen.push(task.payload, task.encryptedData), {
      key: newKey(),
    });
    agent.server.offer({ id: "ex_1", encryptedData, encryptionKey });
    await until(() => agent.server.completed.length === 1);
    await agent.stop();
    expect(seen).toEqual(["recipe", encryptedData]);
    const output: unknown = JSON.parse(agent.server.completed[0]?.output ?? "");
    expect(await unseal(String(output), encryptionKey)).toEqual({});
  });

  test("are answered under the agent's own key when the server knows the other", async () => {
    const key = newKey();
    const encryptionKey = newKey();
    const agent = start(() => "secret", { key });
    agent.server.offer({
      id: "ex_1",
      input: JSON.stringify(await seal({}, key)),
      encryptedData: await seal({}, encryptionKey),
      encryptionKey,
    });
    await until(() => agent.server.completed.length === 1);
    await agent.stop();
    const output: unknown = JSON.parse(agent.server.completed[0]?.output ?? "");
    expect(await unseal(String(output), key)).toBe("secret");
  });

  test("are handed on as they came when no key fits, and answered in plain", async () => {
    const input = await seal({ text: "not for you" }, newKey());
    const seen: unknown[] = [];
    const agent = start((task) => void seen.push(task.input, task.payload), { key: newKey() });
    agent.server.offer({ id: "ex_1", input: JSON.stringify(input), encryptedData: input });
    await until(() => agent.server.completed.length === 1);
    await agent.stop();
    expect(seen).toEqual([input, undefined]);
    expect(agent.server.completed[0]?.output).toBe("{}");
  });

  test("keep the text of an error that nobody meant for the owner", async () => {
    const key = newKey();
    const agent = start(
      (task) => {
        throw task.id === "ex_1" ? new Error("the secret is 42") : new TaskFailedError("bad input");
      },
      { key },
    );
    const input = JSON.stringify(await seal({ secret: 42 }, key));
    agent.server.offer({ id: "ex_1", input });
    agent.server.offer({ id: "ex_2", input });
    await until(() => agent.server.failed.length === 2);
    await agent.stop();
    const [first, second] = agent.server.failed;
    expect(first?.error?.message).not.toContain("42");
    expect(isSealed(first?.error?.message ?? "")).toBe(false);
    expect(second?.error?.message).toBe("bad input");
  });
});
