import { copyFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { type RunningServer, startServer } from "../../src/server.ts";
import { backUpSqliteFile } from "../../src/storage/sqlite/file/backup.ts";
import { type TestServer, testConfig, testWorld, tokenOf } from "../doors/server.ts";
import { makeFolder } from "../suites/open-store.ts";

/** The real server, whose database can be set back. */
export interface RestorableServer
  extends AsyncDisposable,
    Pick<TestServer, "httpUrl" | "token" | "log"> {
  /** Copies the database as `sealflow backup` does. */
  backUp(): void;
  /** Stops it, puts the backup in place as the README says, and starts it. */
  restore(): Promise<void>;
  /** Stops it, sets the files back to what they were at the last `copy`, and starts it. */
  setBack(): Promise<void>;
  /** Stops it, keeps a copy of the files that nobody marks as one, and starts it. */
  copy(): Promise<void>;
}

export async function startRestorableServer(): Promise<RestorableServer> {
  const folder = await makeFolder();
  const at = (name: string) => join(folder.path, name);
  const log: string[] = [];
  const start = () => startServer(testConfig(folder.path), testWorld(log));
  let running: RunningServer = await start();
  const whileStopped = async (act: () => Promise<void>) => {
    await running[Symbol.asyncDispose]();
    await act();
    running = await start();
  };
  const putBack = (name: string) =>
    whileStopped(async () => {
      for (const end of ["-wal", "-shm"]) await rm(at(`sealflow.db${end}`), { force: true });
      await copyFile(at(name), at("sealflow.db"));
    });
  return {
    get httpUrl() {
      return running.httpUrl;
    },
    log,
    token: (draft) => tokenOf(folder.path, draft),
    backUp: () => void backUpSqliteFile(at("sealflow.db"), at("backup.db")),
    restore: () => putBack("backup.db"),
    copy: () => whileStopped(() => copyFile(at("sealflow.db"), at("copy.db"))),
    setBack: () => putBack("copy.db"),
    async [Symbol.asyncDispose]() {
      await running[Symbol.asyncDispose]();
      await folder[Symbol.asyncDispose]();
    },
  };
}
