import { ServiceError } from "../domain/errors.ts";
import { limits } from "../domain/limits.ts";

export function requestTooLarge(maxBytes: number = limits.requestBytesMax): ServiceError {
  return new ServiceError("PAYLOAD_TOO_LARGE", `The request is larger than ${maxBytes} bytes`, {
    details: { maxBytes },
  });
}
