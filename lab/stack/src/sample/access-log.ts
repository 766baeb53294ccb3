/**
 * Access log of the sample origin: one entry a request, in memory. Tests read from it who fetched what. The oldest
 * entries are dropped, so it is no log for operators.
 */
import type { NextFunction, Request, Response } from "express";

const ENTRIES_MAX = 20_000;

export interface AccessLogEntry {
  /** Milliseconds since the epoch at which the request arrived. */
  atMs: number;
  method: string;
  /** Path and query. */
  path: string;
  range: string | null;
  userAgent: string;
  /** Body bytes handed to the socket. */
  bytes: number;
  status: number;
}

export class AccessLog {
  readonly #entries: AccessLogEntry[] = [];

  /** Entries of requests that arrived at or after `sinceMs`, oldest first. */
  entries(sinceMs = 0): AccessLogEntry[] {
    return this.#entries.filter((entry) => entry.atMs >= sinceMs);
  }

  /**
   * Express middleware. The entry exists from the start of the request, and its byte count grows while the answer is
   * sent.
   */
  readonly record = (request: Request, response: Response, next: NextFunction): void => {
    const entry: AccessLogEntry = {
      atMs: Date.now(),
      method: request.method,
      path: request.originalUrl,
      range: request.get("range") ?? null,
      userAgent: request.get("user-agent") ?? "",
      bytes: 0,
      status: 0,
    };
    this.#entries.push(entry);
    if (this.#entries.length > ENTRIES_MAX) this.#entries.shift();
    countBody(response, entry);
    next();
  };
}

function countBody(response: Response, entry: AccessLogEntry): void {
  const { write, end } = response;
  const count = (chunk: unknown): void => {
    entry.status = response.statusCode;
    if (typeof chunk === "string") entry.bytes += Buffer.byteLength(chunk);
    else if (chunk instanceof Uint8Array) entry.bytes += chunk.byteLength;
  };
  response.write = ((chunk: unknown, ...rest: unknown[]) => {
    count(chunk);
    return (write as (...all: unknown[]) => boolean).call(response, chunk, ...rest);
  }) as Response["write"];
  response.end = ((chunk?: unknown, ...rest: unknown[]) => {
    count(chunk);
    return (end as (...all: unknown[]) => Response).call(response, chunk, ...rest);
  }) as Response["end"];
}
