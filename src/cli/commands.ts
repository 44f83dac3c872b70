import type { Command } from "./command.ts";

/** A command by what it does; the rest of it is loaded when it is called. */
export interface CommandEntry {
  /** Begins with a verb, for the list of commands. */
  readonly summary: string;
  load(): Promise<Command>;
}

/** All commands, in the order in which help lists them. A name may have two words. */
export const commands: ReadonlyMap<string, CommandEntry> = new Map([
  [
    "serve",
    {
      summary: "bring the database up to date, and serve",
      load: async () => (await import("./serve.ts")).serve,
    },
  ],
  [
    "token",
    {
      summary: "print a token for an owner",
      load: async () => (await import("./token.ts")).token,
    },
  ],
  [
    "client add",
    {
      summary: "make a client of POST /api/v1/auth/token, and print its id and secret",
      load: async () => (await import("./client-add.ts")).clientAdd,
    },
  ],
  [
    "client list",
    {
      summary: "list the clients",
      load: async () => (await import("./client-list.ts")).clientList,
    },
  ],
  [
    "client remove",
    {
      summary: "remove a client; its tokens are refused from then on",
      load: async () => (await import("./client-remove.ts")).clientRemove,
    },
  ],
  [
    "agent",
    {
      summary: "make any program an agent: take tasks, and run it for each",
      load: async () => (await import("./agent.ts")).agent,
    },
  ],
  [
    "seal",
    {
      summary: "encrypt stdin to stdout, or make a key",
      load: async () => (await import("./seal.ts")).sealCommand,
    },
  ],
  [
    "open",
    {
      summary: "decrypt stdin to stdout",
      load: async () => (await import("./open.ts")).openCommand,
    },
  ],
  [
    "migrate",
    {
      summary: "bring the database up to date without serving",
      load: async () => (await import("./migrate.ts")).migrate,
    },
  ],
  [
    "keys rotate",
    {
      summary: "make a new signing key the one to sign with",
      load: async () => (await import("./keys-rotate.ts")).keysRotate,
    },
  ],
  [
    "backup",
    {
      summary: "copy the database while it is served",
      load: async () => (await import("./backup.ts")).backup,
    },
  ],
]);
