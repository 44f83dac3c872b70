import { invalid, ServiceError } from "../../domain/errors.ts";

/** What a client asks of the token endpoint. Reading it hashes nothing: limits come after it. */
export interface TokenRequest {
  readonly clientId: string;
  readonly clientSecret: string;
  /** Empty: what the client may. */
  readonly scope: string;
}

export interface RawTokenRequest {
  readonly contentType?: string | undefined;
  readonly authorization?: string | undefined;
  readonly body: string;
}

interface Credentials {
  readonly clientId: string;
  readonly clientSecret: string;
}

type Parameters = ReadonlyMap<string, string>;

/** More is not a token request: the door need not read it. */
export const tokenRequestBytesMax = 16_384;

const credentialCharsMax = 512;
const names = ["grant_type", "client_id", "client_secret", "scope"];

/**
 * Reads a client credentials request (RFC 6749 section 4.4): a form or JSON, with the credentials
 * in it or as Basic (section 2.3.1). Throws UNAUTHORIZED when there are none, VALIDATION_ERROR,
 * UNSUPPORTED_MEDIA_TYPE, PAYLOAD_TOO_LARGE.
 */
export function readTokenRequest(raw: RawTokenRequest): TokenRequest {
  if (Buffer.byteLength(raw.body) > tokenRequestBytesMax) {
    throw new ServiceError("PAYLOAD_TOO_LARGE", "A token request has at most 16 KiB");
  }
  const parameters = readParameters(raw);
  const { clientId, clientSecret } = readCredentials(raw.authorization, parameters);
  const grantType = parameters.get("grant_type");
  if (grantType !== "client_credentials") {
    throw invalid("grant_type", "must be client_credentials");
  }
  return { clientId, clientSecret, scope: parameters.get("scope") ?? "" };
}

/** Wrong or no credentials of a client (RFC 6749 section 5.2, `invalid_client`). */
export function clientRefused(message: string): ServiceError {
  return new ServiceError("UNAUTHORIZED", message, {
    headers: { "www-authenticate": 'Basic realm="sealflow"' },
  });
}

function readParameters({ contentType = "", body }: RawTokenRequest): Parameters {
  const [mediaType = ""] = contentType.split(";");
  const type = mediaType.trim().toLowerCase();
  if (type === "application/x-www-form-urlencoded") return readForm(body);
  if (type === "application/json") return readJson(body);
  if (type === "" && body === "") return new Map();
  throw new ServiceError(
    "UNSUPPORTED_MEDIA_TYPE",
    "Send application/x-www-form-urlencoded or application/json",
  );
}

function readForm(body: string): Parameters {
  const form = new URLSearchParams(body);
  for (const name of names) {
    if (form.getAll(name).length > 1) throw invalid(name, "is given more than once");
  }
  return present(names.map((name) => [name, form.get(name)]));
}

function readJson(body: string): Parameters {
  const parsed = parseObject(body.trim() === "" ? "{}" : body);
  return present(names.map((name) => [name, parsed.get(name)]));
}

function parseObject(body: string): ReadonlyMap<string, unknown> {
  let parsed: unknown;
  try {
    parsed = JSON.parse(body);
  } catch {
    throw invalid("body", "is not JSON");
  }
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed)) {
    throw invalid("body", "must be a JSON object");
  }
  return new Map(Object.entries(parsed));
}

/** A parameter without a value counts as absent (RFC 6749 section 3.2). */
function present(pairs: readonly (readonly [string, unknown])[]): Parameters {
  const parameters = new Map<string, string>();
  for (const [name, value] of pairs) {
    if (value === undefined || value === null || value === "") continue;
    if (typeof value !== "string") throw invalid(name, "must be a string");
    parameters.set(name, value);
  }
  return parameters;
}

function readCredentials(authorization: string | undefined, parameters: Parameters): Credentials {
  const basic = readBasic(authorization);
  const clientId = parameters.get("client_id");
  const clientSecret = parameters.get("client_secret");
  if (basic !== null) {
    if (clientSecret !== undefined) throw invalid("client_secret", "is given twice");
    if ((clientId ?? basic.clientId) !== basic.clientId) throw invalid("client_id", "differs");
    return bounded(basic);
  }
  if (clientId !== undefined && clientSecret !== undefined) {
    return bounded({ clientId, clientSecret });
  }
  throw clientRefused("Send client_id and client_secret, in the body or as Authorization: Basic");
}

/** null unless the scheme is Basic: a client may send an old bearer along with its new request. */
function readBasic(authorization = ""): Credentials | null {
  if (!/^basic( |$)/i.test(authorization)) return null;
  const [, encoded] = /^basic +([A-Za-z0-9+/]+=*) *$/i.exec(authorization) ?? [];
  const text = Buffer.from(encoded ?? "", "base64").toString("utf8");
  const colon = text.indexOf(":");
  if (colon > 0) {
    const clientId = formDecoded(text.slice(0, colon));
    const clientSecret = formDecoded(text.slice(colon + 1));
    if (clientId !== null && clientSecret !== null) return { clientId, clientSecret };
  }
  throw clientRefused("Authorization: Basic must hold base64 of CLIENT_ID:CLIENT_SECRET");
}

/** RFC 6749 section 2.3.1 has both parts encoded as in a form before Basic joins them. */
function formDecoded(text: string): string | null {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    return null;
  }
}

/** The client id becomes the key of a limit, wherever that is kept. RFC 6749 appendix A.1, A.2. */
function bounded(credentials: Credentials): Credentials {
  for (const text of [credentials.clientId, credentials.clientSecret]) {
    if (text.length > credentialCharsMax || !/^[\x20-\x7e]*$/.test(text)) {
      throw clientRefused("The client id or its secret is wrong");
    }
  }
  return credentials;
}
