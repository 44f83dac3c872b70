/** One Ctrl-C reaches a process that npm runs twice: from the terminal, and from npm. */
const sameKeyMs = 500;

/**
 * Resolves with the first SIGTERM or SIGINT, and calls `again` at the next. For the rest of the
 * process: a signal that comes while it ends must not change its exit code.
 */
export function stopAsked(again: () => void): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const isRunByNpm = process.env.npm_lifecycle_event !== undefined;
  let firstAtMs: number | undefined;
  const onSignal = () => {
    if (firstAtMs === undefined) {
      firstAtMs = performance.now();
      resolve();
    } else if (!isRunByNpm || performance.now() - firstAtMs > sameKeyMs) again();
  };
  for (const signal of ["SIGTERM", "SIGINT"]) process.on(signal, onSignal);
  return promise;
}
