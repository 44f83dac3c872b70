/** What has been opened, closed in the reverse order. */
export class Closers {
  readonly #closers: (() => unknown)[] = [];

  /** Disposes of it in the end. */
  use<T extends Disposable | AsyncDisposable>(opened: T): T {
    this.defer(() =>
      Symbol.asyncDispose in opened ? opened[Symbol.asyncDispose]() : opened[Symbol.dispose](),
    );
    return opened;
  }

  /** Does it in the end. */
  defer(close: () => unknown): void {
    this.#closers.push(close);
  }

  /** Closes all, once; what fails to close keeps nothing else from it. Throws the first failure. */
  async close(): Promise<void> {
    const failures: unknown[] = [];
    for (let close = this.#closers.pop(); close !== undefined; close = this.#closers.pop()) {
      try {
        await close();
      } catch (cause) {
        failures.push(cause);
      }
    }
    if (failures.length > 0) throw failures[0];
  }
}
