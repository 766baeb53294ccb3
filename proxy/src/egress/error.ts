/** Why a fetch came to nothing, as data: the `rejection` is what the client is told. */
import type { Rejection } from "@tributary/protocol";

/** `badUrl` is the client's fault, `egressRefused` this proxy's policy, everything else the origin's. */
export class EgressError extends Error {
  override readonly name = "EgressError";

  constructor(readonly rejection: Rejection) {
    super(rejection.message);
  }
}

export function egressError(kind: string, message: string, numbers: { got?: number; limit?: number } = {}): EgressError {
  return new EgressError({ kind, message, ...numbers });
}
