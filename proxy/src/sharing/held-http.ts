/**
 * GET /v1/held: what this proxy holds or reads of a chunk that it shares, for a peer. It answers from that alone and
 * asks nobody, so requests between proxies cannot go round in a circle. The bytes may end early.
 */
import type { Request, Response } from "express";
import { CLIENT_HEADER, parseRange, type ByteRange, type Rejection } from "@tributary/contract";
import type { Client } from "../clients";
import { EgressError } from "../egress/error";
import { refuse } from "../refusal";
import type { Allowance } from "../token";
import type { SharedChunks } from "./shared-chunks";

export interface HeldOptions {
  shared: Pick<SharedChunks, "held">;
  admit: (token: string | undefined) => Allowance | Rejection | undefined;
  clientAt: (address: string) => Client;
}

const bad = (message: string): Rejection => ({ kind: "badRequest", message });

/** Reads a closed range. It gives "none" for no text, and undefined for any other text. */
function closedRange(text: string | undefined): ByteRange | "none" | undefined {
  if (text === undefined) return "none";
  const range = parseRange(text);
  return range && "start" in range && range.end !== undefined ? { start: range.start, end: range.end } : undefined;
}

export async function serveHeld(options: HeldOptions, request: Request, response: Response): Promise<void> {
  const { url, part, version, token, pageOrigin } = request.query;
  if (request.headers[CLIENT_HEADER] === undefined)
    return refuse(response, { kind: "clientRefused", message: `Send the header ${CLIENT_HEADER}, with any value.` });
  const span = closedRange(typeof part === "string" ? `bytes=${part}` : undefined);
  const range = closedRange(request.headers.range);
  const isText = typeof url === "string" && typeof version === "string";
  if (!isText || typeof span !== "object" || range === undefined)
    return refuse(response, bad("Give url, version and part=FIRST-LAST, and at most one closed Range."));
  const client = options.clientAt(request.ip ?? "");
  const allowance = client.bytesRefusal() ?? options.admit(typeof token === "string" ? token : undefined);
  if (allowance && "kind" in allowance) return refuse(response, allowance);
  const wanted = {
    url,
    range: range === "none" ? undefined : range,
    pageOrigin: typeof pageOrigin === "string" ? pageOrigin : undefined,
  };
  try {
    const held = options.shared.held(wanted, { start: span.start, end: span.end + 1 }, version);
    if (!held) return refuse(response, { kind: "notFound", message: "This proxy does not hold these bytes." });
    response.status(200).type("application/octet-stream").flushHeaders();
    for await (const bytes of held) {
      if (response.destroyed) return;
      if (allowance) allowance.leftBytes -= bytes.length;
      client.noteSent(bytes.length);
      if (!response.write(bytes))
        await new Promise((resolve) => response.once("drain", resolve).once("close", resolve));
    }
    response.end();
  } catch (error) {
    if (!(error instanceof EgressError)) throw error;
    refuse(response, error.rejection);
  }
}
