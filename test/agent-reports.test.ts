import { Code } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { TaskFailedError } from "../src/client/agent.ts";
import { FakeAgentService, refusal } from "./fake-agent-service.ts";
import { sleep, start, unavailable, until } from "./running-agent.ts";

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
