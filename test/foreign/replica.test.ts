import { join } from "node:path";
import { expect, test } from "vitest";
import { connect, newKey, openReplica, type StateReplica } from "../../src/client/client.ts";
import { fileStorage } from "../../src/client/replica/file-storage.ts";
import { startTestServer } from "../doors/server.ts";
import { makeFolder } from "../suites/open-store.ts";
import { openInChromium } from "./chromium.ts";
import { openWebSite } from "./web-site.ts";

const key = newKey();

async function contentOf(replica: StateReplica<string>): Promise<string[]> {
  const records = await replica.list();
  return records
    .map(({ entityId, version, data, isPending }) => `${entityId} ${version} ${data} ${isPending}`)
    .sort();
}

/** 500 changes of 150 records: most are changed again, some deleted, some deleted and made anew. */
async function makeChanges(replica: StateReplica<string>): Promise<void> {
  for (let i = 0; i < 500; i += 1) {
    const entityId = `n${(i * 7) % 150}`;
    const isThere = (await replica.get("note", entityId)) !== undefined;
    if (isThere && i % 5 === 0) await replica.delete("note", entityId);
    else await replica.push({ type: "note", entityId, data: `change ${i} ünï` });
  }
  await expect.poll(() => replica.pendingCount, { timeout: 30_000 }).toBe(0);
}

test("a page in Chromium is offline, misses 500 changes, is reloaded, and has them all", async () => {
  await using folder = await makeFolder();
  await using site = await openWebSite("replica-page.ts");
  await using server = await startTestServer({ corsOrigins: [site.origin] });
  const token = await server.token({ sub: "me" });
  let step = 0;
  const ask = async (act: string) => {
    step += 1;
    site.give({ server: server.httpUrl, token, key, step, act });
    return site.nextReport();
  };

  const laptop = await openReplica<string>({
    sync: connect(server.httpUrl, { token, agentId: "laptop" }).sync,
    storage: fileStorage(join(folder.path, "replica")),
    key,
    onConflict: () => "server",
  });
  laptop.start();
  for (const entityId of ["n1", "n2"]) await laptop.push({ type: "note", entityId, data: "early" });
  await expect.poll(() => laptop.pendingCount).toBe(0);

  site.give({ server: server.httpUrl, token, key, step, act: "none" });
  await using _ = await openInChromium(site.origin);
  expect(await site.nextReport()).toEqual({ loaded: true });
  expect(await ask("open")).toEqual({ open: [] });
  const early = ["n1 1 early false", "n2 1 early false"];
  expect(await ask("start")).toEqual({ start: early });
  expect(await ask("cut")).toEqual({ cut: early });
  expect(await ask("edit")).toEqual({ edit: ["browser 1 made offline true", ...early] });

  await makeChanges(laptop);
  expect(await ask("reload")).toEqual({ loaded: true });
  // What it held, and what it had not sent, from the database.
  expect(await ask("open")).toEqual({ open: ["browser 1 made offline true", ...early] });
  const { start } = Object(await ask("start"));
  await expect.poll(() => laptop.get("note", "browser")).toMatchObject({ data: "made offline" });
  expect(start).toEqual(await contentOf(laptop));
  expect(start.length).toBeGreaterThan(100);

  expect(await ask("lose")).toEqual({
    lose: expect.stringContaining("Another replica has opened"),
  });
  await laptop.close();
});
