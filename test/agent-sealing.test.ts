import { describe, expect, test } from "vitest";
import { TaskFailedError } from "../src/client/agent.ts";
import { isSealed, newKey, seal, unseal } from "../src/client/crypto.ts";
import { start, until } from "./running-agent.ts";

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

  test("are not opened with the workflow's key, which is handed on with them", async () => {
    const encryptionKey = newKey();
    const encryptedData = await seal("recipe", encryptionKey);
    const input = await seal({ text: "to be" }, encryptionKey);
    const seen: unknown[] = [];
    const agent = start((task) => void seen.push(task), { key: newKey() });
    agent.server.offer({
      id: "ex_1",
      input: JSON.stringify(input),
      encryptedData,
      encryptionKey,
    });
    await until(() => agent.server.completed.length === 1);
    await agent.stop();
    expect(seen).toMatchObject([{ input, payload: undefined, encryptedData, encryptionKey }]);
    expect(agent.server.completed[0]?.output).toBe("{}");
  });

  test("are answered under the agent's own key, beside what only the workflow's opens", async () => {
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
