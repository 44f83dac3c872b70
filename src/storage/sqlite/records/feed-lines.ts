import type { LifecycleChange } from "../../../domain/record.ts";

/** Something that stands in the feed: where, what it weighs, and whether the query wants it. */
export interface Place {
  readonly seq: number;
  readonly isWanted: boolean;
  readonly dataBytes: number;
  /** Of its ids and other names. */
  readonly nameBytes: number;
  /** Null for a record, whose data is read once it is known to fit the page. */
  readonly change: LifecycleChange | null;
}

/** A part of the feed that one index holds in order. */
export interface Line {
  /** Exclusive. */
  readonly after: number;
  look(after: number, limit: number): readonly Place[];
}

/** A stream mostly finds one change, a first pull thousands. */
const firstLook = 16;
const lookMax = 1_024;

/** Merges lines by position. Looks no farther ahead than it is read. */
export function* inFeedOrder(lines: readonly Line[]): Generator<Place> {
  const fronts = lines.flatMap((line): Front[] => {
    const rest = walk(line);
    const first = rest.next();
    return first.done === true ? [] : [{ place: first.value, rest }];
  });
  for (let front = earliest(fronts); front !== undefined; front = earliest(fronts)) {
    yield front.place;
    const next = front.rest.next();
    if (next.done === true) fronts.splice(fronts.indexOf(front), 1);
    else front.place = next.value;
  }
}

interface Front {
  place: Place;
  readonly rest: Iterator<Place, void>;
}

function earliest(fronts: readonly Front[]): Front | undefined {
  let found = fronts[0];
  for (const front of fronts) {
    if (found !== undefined && front.place.seq < found.place.seq) found = front;
  }
  return found;
}

function* walk(line: Line): Generator<Place, void> {
  let { after } = line;
  for (let limit = firstLook; ; limit = Math.min(limit * 4, lookMax)) {
    const places = line.look(after, limit);
    yield* places;
    const last = places.at(-1);
    if (last === undefined || places.length < limit) return;
    after = last.seq;
  }
}
