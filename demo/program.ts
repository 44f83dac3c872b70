import type { ChildProcessWithoutNullStreams } from "node:child_process";
import { createInterface } from "node:readline";

/** A running program whose lines are read as they come. */
export class Program implements AsyncDisposable {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #lines: string[] = [];
  readonly #ended: Promise<void>;
  #errors = "";
  #read = 0;
  #wake: () => void = () => {};

  constructor(child: ChildProcessWithoutNullStreams) {
    this.#child = child;
    const lines = createInterface({ input: child.stdout });
    lines.on("line", (line) => {
      this.#lines.push(line);
      this.#wake();
    });
    child.stderr.on("data", (chunk: Buffer) => {
      this.#errors += chunk.toString();
    });
    this.#ended = new Promise((resolve) => {
      child.once("close", () => {
        resolve();
        this.#wake();
      });
    });
  }

  /** The next line that matches. Rejects when the program ends without one. */
  async line(pattern: RegExp): Promise<RegExpExecArray> {
    for (;;) {
      for (; this.#read < this.#lines.length; this.#read += 1) {
        const match = pattern.exec(this.#lines[this.#read] ?? "");
        if (match !== null) {
          this.#read += 1;
          return match;
        }
      }
      if (this.#child.exitCode !== null) throw new Error(`it ended: ${this.#errors}`);
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  /** The lines that were not read yet, once the program has ended well. */
  async rest(): Promise<readonly string[]> {
    await this.#ended;
    if (this.#child.exitCode !== 0) throw new Error(`it failed: ${this.#errors}`);
    return this.#lines.slice(this.#read);
  }

  stop(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode === null) this.#child.kill("SIGKILL");
    await this.#ended;
  }
}
