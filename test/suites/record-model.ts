import type { ConflictReason, PushStatus, RecordDraft } from "../../src/domain/record.ts";

export interface HistoryPush {
  readonly agentId: string;
  readonly mode: "single" | "each" | "atomic";
  readonly drafts: readonly RecordDraft[];
}

interface ModelState {
  readonly version: string;
  readonly deleted: boolean;
  readonly encryptedData: string;
  readonly revision: number;
  readonly agentId: string;
}

type Verdict = Exclude<PushStatus, "conflict"> | ConflictReason;

/** What a store of records must come to, said in the simplest way. Versions are whole numbers. */
export class RecordModel {
  #states = new Map<string, ModelState>();

  /** The verdict on each draft, or `refused` when all of them are undone. */
  push({ agentId, mode, drafts }: HistoryPush): readonly Verdict[] | "refused" {
    const before = new Map(this.#states);
    const verdicts = drafts.map((draft) => this.#pushOne(agentId, draft));
    const isRefused = verdicts.some((it) => it === "STALE_VERSION" || it === "SAME_VERSION");
    if (mode === "each" || !isRefused) return verdicts;
    this.#states = before;
    return "refused";
  }

  /** By type and id, sorted. */
  state(): ReadonlyMap<string, ModelState> {
    return new Map([...this.#states].sort(([a], [b]) => (a < b ? -1 : 1)));
  }

  #pushOne(agentId: string, draft: RecordDraft): Verdict {
    const { type, entityId, version, deleted, encryptedData } = draft;
    const name = `${type}/${entityId}`;
    const stored = this.#states.get(name);
    if (stored !== undefined && Number(version) <= Number(stored.version)) {
      if (version !== stored.version) return "STALE_VERSION";
      const isSame = deleted === stored.deleted && encryptedData === stored.encryptedData;
      return isSame ? "unchanged" : "SAME_VERSION";
    }
    const revision = (stored?.revision ?? 0) + 1;
    this.#states.set(name, { version, deleted, encryptedData, revision, agentId });
    if (deleted) return "deleted";
    return stored === undefined ? "created" : "updated";
  }
}
