import { setImmediate } from "node:timers/promises";
import { expect, onTestFinished, test, vi } from "vitest";
import { pause } from "../src/client/backoff.ts";

test("a pause that is over before it begins ends, and Node warns of nothing", async () => {
  const warned = vi.fn();
  process.on("warning", warned);
  onTestFinished(() => void process.off("warning", warned));
  await pause(-5);
  await setImmediate();
  expect(warned).not.toHaveBeenCalled();
});
