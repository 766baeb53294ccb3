/** Refusal: how the HTTP endpoint answers with an error, and how it ends requests that do not end. */
import type { Request, Response } from "express";
import type { Rejection, RejectionKind } from "@tributary/contract";

/** Without it, an origin's page that is opened from here would run scripts under the proxy's name. */
export const SANDBOX = "sandbox; default-src 'none'";

/** Every other rejection is the origin's fault: 502. */
const STATUS_OF: Partial<Record<RejectionKind, number>> = {
  badUrl: 400,
  urlTooLong: 400,
  badRange: 400,
  badRequest: 400,
  badOffer: 400,
  clientRefused: 403,
  egressRefused: 403,
  tokenMissing: 401,
  tokenRefused: 401,
  tokenExpired: 401,
  budgetSpent: 429,
  notFound: 404,
  methodNotAllowed: 405,
  requestTooLarge: 413,
  draining: 503,
  starting: 503,
  proxyBusy: 503,
  tooManySessions: 503,
  internalError: 500,
  noLibrary: 501,
  grantMissing: 401,
  grantRefused: 403,
  grantExpired: 403,
  objectMissing: 404,
  objectDamaged: 500,
  offsetWrong: 409,
  rootMismatch: 422,
  uploadTooSlow: 408,
  libraryFull: 507,
};

export function refuse(response: Response, rejection: Rejection): void {
  response.removeHeader("Content-Security-Policy");
  response.status(STATUS_OF[rejection.kind] ?? 502).json({ error: rejection });
}

const BODY_MS_MAX = 30_000;

/** If the rest of the body does not come in time, the connection ends. */
export function limitBody(request: Request): void {
  if (request.closed) return;
  const timer = setTimeout(() => request.socket.destroy(), BODY_MS_MAX).unref();
  request.once("close", () => clearTimeout(timer));
}
