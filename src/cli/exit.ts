/** The exit codes of all commands. `agent --help` says what they mean there. */
export const exitCodes = { done: 0, failed: 1, usage: 2, refused: 3 } as const;

/** The command line is wrong. The text is one sentence: what is wrong, and what is right. */
export class UsageError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "UsageError";
  }
}

/** The command cannot do what it was asked for. The text says why, and what to do. */
export class CommandError extends Error {
  readonly exitCode: number;

  constructor(message: string, options: ErrorOptions & { readonly exitCode?: number } = {}) {
    super(message, options);
    this.name = "CommandError";
    this.exitCode = options.exitCode ?? exitCodes.failed;
  }
}
