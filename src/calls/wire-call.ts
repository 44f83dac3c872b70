import type { DescMethod, Message } from "@bufbuild/protobuf";
import type { FieldViolation } from "../domain/errors.ts";
import type { Departure } from "./leaving.ts";

/** A call as a door hands it over, before anything of it is believed. */
export interface WireCall extends Departure {
  readonly method: DescMethod;
  readonly door: string;
  /** Of the peer, or of whom a trusted proxy speaks for. */
  readonly address: string;
  /** A header or metadata entry, by its lower-case name. */
  metadata(name: string): string | undefined;
  /** Reads and decodes the body: asked for once the caller is known and within its limits. */
  readMessage(): Promise<Message>;
  answerHeader(name: string, value: string): void;
  /** Ends the stream on the wire at once: its reader does not read. */
  drop(): void;
  /** Has `tell` called whenever the reader of a stream has taken more of it. */
  onProgress(tell: () => void): void;
  /** What `readMessage` found wrong and left out of the message. */
  readonly problems?: readonly FieldViolation[];
}
