/** Why a fetch came to nothing, as data: the `rejection` is what the client is told. */
import type { Rejection } from "@tributary/protocol";
import type { Log } from "../log";

/** `badUrl` is the client's fault, `egressRefused` this proxy's policy, everything else the origin's. */
export class EgressError extends Error {
  override readonly name = "EgressError";

  constructor(readonly rejection: Rejection) {
    super(rejection.message);
  }
}

export function egressError(
  kind: string,
  message: string,
  numbers: { got?: number; limit?: number } = {},
): EgressError {
  return new EgressError({ kind, message, ...numbers });
}

/**
 * What the client is told. An error that nobody expected is for the log alone, and ends this fetch, not the process.
 */
export function rejectionOf(error: unknown, log: Log): Rejection {
  if (error instanceof EgressError) return error.rejection;
  log("internalError", { message: error instanceof Error ? error.message : String(error) });
  return { kind: "internalError", message: "The proxy failed; its log says why." };
}
