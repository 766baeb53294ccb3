/** Why a fetch failed, as data. The client gets the `rejection`. */
import type { Rejection, RejectionKind } from "@tributary/contract";
import type { Log } from "../log";

/**
 * `badUrl` is the client's fault, and `egressRefused` is this proxy's policy. Every other kind is the origin's fault.
 */
export class EgressError extends Error {
  override readonly name = "EgressError";

  constructor(readonly rejection: Rejection) {
    super(rejection.message);
  }
}

export function egressError(
  kind: RejectionKind,
  message: string,
  numbers: { got?: number; limit?: number } = {},
): EgressError {
  return new EgressError({ kind, message, ...numbers });
}

/** The rejection for the client. An unexpected error goes only to the log. It ends this fetch, but not the process. */
export function rejectionOf(error: unknown, log: Log): Rejection {
  if (error instanceof EgressError) return error.rejection;
  log("internalError", { message: error instanceof Error ? error.message : String(error) });
  return { kind: "internalError", message: "The proxy failed. Its log says why." };
}
