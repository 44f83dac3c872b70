export interface Repetition {
  readonly everyMs: number;
  readonly work: () => Promise<void>;
  /** A failed round is tried again at the next one; this is only to tell of it. */
  readonly onFailure?: ((error: unknown) => void) | undefined;
}

export interface Repeating extends Disposable {
  /** Does the work at once, after a round that runs now. */
  now(): Promise<void>;
}

/**
 * Does work again and again, each round a pause after the last and never two at a time, so that an
 * older look cannot overwrite a newer one. Never keeps the process alive.
 */
export function repeat({ everyMs, work, onFailure }: Repetition): Repeating {
  let timer: NodeJS.Timeout | undefined;
  let isOver = false;
  let last = Promise.resolve();
  function now(): Promise<void> {
    last = last.catch(() => {}).then(work);
    return last;
  }
  function schedule(): void {
    if (!isOver) timer = setTimeout(round, everyMs).unref();
  }
  function round(): void {
    now()
      .catch((error: unknown) => onFailure?.(error))
      .finally(schedule);
  }
  schedule();
  return {
    now,
    [Symbol.dispose]() {
      isOver = true;
      clearTimeout(timer);
    },
  };
}
