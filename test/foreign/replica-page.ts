// Runs in the browser: a page of an application that keeps its state in IndexedDB. It does what the
// test asks for, one step after another, and reports what it then holds.
import {
  connect,
  indexedDbStorage,
  openReplica,
  type StateReplica,
} from "../../src/client/client.ts";

interface Given {
  readonly server: string;
  readonly token: string;
  readonly key: string;
  /** Steps are numbered; what was asked before the page was loaded is done. */
  readonly step: number;
  readonly act: keyof typeof acts;
}

const acts = {
  open: async () => {
    replica = await open();
  },
  start: async () => {
    held().start();
    await until((kinds) => kinds.includes("upToDate") && held().pendingCount === 0);
  },
  /** As when the network is gone: what is under way fails, and all that follows. */
  cut: async () => {
    isCut = true;
    line.abort(new TypeError("no network"));
    await until((kinds) => kinds.includes("offline"));
  },
  edit: async () => {
    await held().push({ type: "note", entityId: "browser", data: "made offline" });
  },
  /** Another tab opens the same; what this one then wants to push. */
  lose: async () => {
    await open();
    await held().push({ type: "note", entityId: "lost", data: "too late" });
  },
  reload: async () => {
    location.reload();
    await new Promise(() => {});
  },
} satisfies Record<string, () => Promise<void>>;

let replica: StateReplica<string> | undefined;
let isCut = false;
const line = new AbortController();
const kinds: string[] = [];
let wake = () => {};

let given = await readGiven();
const { sync } = connect(given.server, {
  token: given.token,
  agentId: "browser",
  fetch(input, init) {
    if (isCut) return Promise.reject(new TypeError("no network"));
    const signal = AbortSignal.any([line.signal, ...(init?.signal ? [init.signal] : [])]);
    return fetch(input, { ...init, signal });
  },
});

await report({ loaded: true });
for (;;) {
  const { act } = await nextStep();
  const outcome = await acts[act]().then(
    async () => ({ [act]: await content() }),
    (error: unknown) => ({ [act]: String(error) }),
  );
  await report(outcome);
}

function open(): Promise<StateReplica<string>> {
  return openReplica<string>({
    sync,
    storage: indexedDbStorage("me"),
    key: given.key,
    onConflict: () => "server",
    onEvent({ kind }) {
      kinds.push(kind);
      wake();
    },
  });
}

function held(): StateReplica<string> {
  if (replica === undefined) throw new Error("it is not open");
  return replica;
}

async function until(isTrue: (kinds: readonly string[]) => boolean): Promise<void> {
  while (!isTrue(kinds)) {
    await new Promise<void>((resolve) => {
      wake = resolve;
    });
  }
}

async function content(): Promise<readonly string[]> {
  const records = await held().list();
  return records
    .map(({ entityId, version, data, isPending }) => `${entityId} ${version} ${data} ${isPending}`)
    .sort();
}

async function nextStep(): Promise<Given> {
  const { step } = given;
  while (given.step === step) {
    await new Promise((resolve) => setTimeout(resolve, 20));
    given = await readGiven();
  }
  return given;
}

async function readGiven(): Promise<Given> {
  return (await fetch("/given.json")).json();
}

async function report(outcome: unknown): Promise<void> {
  await fetch("/report", { method: "POST", body: JSON.stringify(outcome) });
}
