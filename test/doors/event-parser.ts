/** An event as a browser would dispatch it. */
export interface SentEvent {
  readonly event: string;
  readonly data: string;
  /** What `Last-Event-ID` would be now. */
  readonly lastEventId: string;
}

/**
 * Reads an event stream as the HTML Living Standard says in section 9.2.6, and nothing more: what
 * it takes, a browser takes.
 */
export class EventParser {
  /** The reconnection time in ms; undefined until the stream names one. */
  retryMs: number | undefined;
  readonly #decoder = new TextDecoder("utf-8");
  #text = "";
  #data = "";
  #event = "";
  #id = "";

  /** The events that are whole with this chunk. */
  feed(chunk: Uint8Array): SentEvent[] {
    this.#text += this.#decoder.decode(chunk, { stream: true });
    const events: SentEvent[] = [];
    for (let line = this.#nextLine(); line !== undefined; line = this.#nextLine()) {
      if (line !== "") this.#field(line);
      else events.push(...this.#dispatch());
    }
    return events;
  }

  /** Without its end: LF, CR LF, or CR; undefined until it has come. */
  #nextLine(): string | undefined {
    const end = /\r\n|\n|\r(?!$)/.exec(this.#text);
    if (end === null) return undefined;
    const line = this.#text.slice(0, end.index);
    this.#text = this.#text.slice(end.index + end[0].length);
    return line;
  }

  #field(line: string): void {
    const colon = line.indexOf(":");
    if (colon === 0) return;
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "event") this.#event = value;
    else if (name === "data") this.#data += `${value}\n`;
    else if (name === "id" && !value.includes("\0")) this.#id = value;
    else if (name === "retry" && /^\d+$/.test(value)) this.retryMs = Number(value);
  }

  #dispatch(): SentEvent[] {
    const [event, data] = [this.#event || "message", this.#data];
    this.#event = "";
    this.#data = "";
    return data === "" ? [] : [{ event, data: data.slice(0, -1), lastEventId: this.#id }];
  }
}
