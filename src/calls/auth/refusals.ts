import { errors } from "jose";
import { ServiceError } from "../../domain/errors.ts";

const realm = 'Bearer realm="sealflow"';

/** Nothing, or nothing readable, was sent to tell who calls (RFC 6750 section 3: no error code). */
export function credentialsMissing(message: string): ServiceError {
  return new ServiceError("UNAUTHORIZED", message, { headers: { "www-authenticate": realm } });
}

/** A token was sent and is not accepted (RFC 6750 section 3.1). */
export function tokenRefused(message: string, cause?: errors.JOSEError): ServiceError {
  const headers = { "www-authenticate": `${realm}, error="invalid_token"` };
  return new ServiceError("UNAUTHORIZED", message, cause ? { headers, cause } : { headers });
}

/** What jose threw, as a refusal that tells what is wrong; any other error as it is. */
export function refusalOf(error: unknown): unknown {
  if (!(error instanceof errors.JOSEError)) return error;
  if (error instanceof errors.JWTExpired) {
    return tokenRefused(`The token expired at ${isoOf(error.payload.exp)}`);
  }
  if (error instanceof errors.JWTClaimValidationFailed) return claimRefused(error);
  if (error instanceof errors.JWSSignatureVerificationFailed) {
    return tokenRefused("The token's signature is wrong", error);
  }
  if (error instanceof errors.JOSEAlgNotAllowed) {
    return tokenRefused("The token's signature algorithm is not accepted here", error);
  }
  if (error instanceof errors.JOSENotSupported) {
    return tokenRefused('The token demands an extension ("crit") that is not supported');
  }
  return tokenRefused("The token is not a well-formed signed JWT");
}

function claimRefused(error: errors.JWTClaimValidationFailed): ServiceError {
  // The name is one that was asked for, never the sender's own text.
  const claim = error.claim;
  if (error.reason === "missing") return tokenRefused(`The token has no "${claim}" claim`);
  if (error.reason === "invalid") return tokenRefused(`The token's "${claim}" must be a number`);
  if (claim === "nbf") {
    return tokenRefused(`The token is not valid before ${isoOf(error.payload.nbf)}`);
  }
  return tokenRefused(`The token's "${claim}" is not one that is accepted here`);
}

/** A NumericDate (RFC 7519 section 2) for people. */
function isoOf(seconds: unknown): string {
  const date = new Date(typeof seconds === "number" ? seconds * 1000 : Number.NaN);
  return Number.isNaN(date.getTime()) ? "a time out of range" : date.toISOString();
}
