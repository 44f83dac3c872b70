/** Lets one loop wait until there is something to do. */
export class Latch {
  #open = () => {};

  wake(): void {
    this.#open();
  }

  /** Until it is woken or the signal is aborted. Never rejects. */
  wait(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal.aborted) return resolve();
      const open = () => {
        signal.removeEventListener("abort", open);
        resolve();
      };
      signal.addEventListener("abort", open, { once: true });
      this.#open = open;
    });
  }
}
