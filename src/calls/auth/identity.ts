import type { Group } from "../../domain/groups.ts";

/** What a verified token says about who calls. */
export interface Identity {
  readonly owner: string;
  /** The only agent that the token may speak for; empty: not bound. */
  readonly boundAgentId: string;
  /** null: all. */
  readonly groups: ReadonlySet<Group> | null;
  /** The client of the token endpoint that drew the token; empty: none. */
  readonly clientId: string;
  /** What the token was signed with: the `kid` of an own key, or a name that its issuer gives. */
  readonly keyId: string;
  /** The token's `exp`, in milliseconds since the epoch, without leeway. */
  readonly expiresAtMs: number;
}

/** How far the clocks of an issuer and of this server may differ. */
export const leewayMs = 30_000;

const subjectCharsMax = 256;
const agentIdPattern = /^[A-Za-z0-9._:-]{1,128}$/;

/** Whether a `sub` can be an owner: 1-256 characters, without NUL and lone surrogates. */
export function isSubject(value: unknown): value is string {
  return (
    typeof value === "string" &&
    value.length > 0 &&
    value.length <= subjectCharsMax &&
    !value.includes("\0") &&
    value.isWellFormed()
  );
}

/** Whether it names an agent. `register` would hide behind the path /agents/register. */
export function isAgentId(value: unknown): value is string {
  return typeof value === "string" && agentIdPattern.test(value) && value !== "register";
}
