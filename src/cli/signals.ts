/** One Ctrl-C reaches a process that npm runs twice: from the terminal, and from npm. */
const sameKeyMs = 500;

export interface StopSignals extends Disposable {
  /** Resolves with the first SIGTERM or SIGINT. */
  readonly asked: Promise<void>;
}

/** `again` is called at the second signal. */
export function onStopSignals(again: () => void): StopSignals {
  const { promise: asked, resolve } = Promise.withResolvers<void>();
  const isRunByNpm = process.env.npm_lifecycle_event !== undefined;
  let firstAtMs: number | undefined;
  const onSignal = () => {
    if (firstAtMs === undefined) {
      firstAtMs = performance.now();
      resolve();
    } else if (!isRunByNpm || performance.now() - firstAtMs > sameKeyMs) again();
  };
  const signals = ["SIGTERM", "SIGINT"] as const;
  for (const signal of signals) process.on(signal, onSignal);
  return {
    asked,
    [Symbol.dispose]() {
      for (const signal of signals) process.off(signal, onSignal);
    },
  };
}
