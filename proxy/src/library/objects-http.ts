/**
 * The library over HTTP: /v1/objects/ID (publications.md §5). Plain players and web pages of every origin may read
 * objects, as they read any file of a web server. Who uploads must show a grant.
 */
import express, { type Request, type Response, type Router } from "express";
import { parseRange, type RangeRequest, type Rejection } from "@tributary/contract";
import { MEDIA_TYPE, PUBLICATION_LIMITS } from "@tributary/contract/publication-schema";
import { parseObjectId, pieceCountOf } from "@tributary/contract/tree";
import type { OriginHead } from "../chunk";
import type { ChunkStore } from "../chunks";
import type { Client } from "../clients";
import { EgressError, egressError } from "../egress/error";
import { HttpDelivery } from "../http-delivery";
import type { Log } from "../log";
import { limitBody, refuse, SANDBOX } from "../refusal";
import type { Shaper } from "../shaper";
import type { Allowance } from "../token";
import { missing, type Library } from "./library";
import { objectAddress, objectHeaders } from "./object-origin";
import type { Uploads } from "./uploads";

/** A proxy's library as its HTTP endpoint needs it. */
export interface ObjectStore {
  library: Library;
  uploads: Uploads;
  grantFault: (authorization: string | undefined, id: string) => Rejection | undefined;
}

export interface ObjectRoutesOptions {
  health: () => { status: "starting" | "ok" | "draining" };
  chunks: Pick<ChunkStore, "open">;
  /** Undefined if the proxy has no library. */
  objects?: ObjectStore | undefined;
  shaper: Shaper;
  log: Log;
  /** What the proxy may send for a request with this token. */
  admit: (token: string | undefined) => Allowance | Rejection | undefined;
  /** The client at an IP address. */
  clientAt: (address: string) => Client;
  /** A delivery has begun (1) or ended (-1). */
  onDelivery: (change: 1 | -1, failure?: Rejection) => void;
}

/** For one request. A chunk has at most 33. */
const PIECES_MAX = 128;

export function objectRoutes(options: ObjectRoutesOptions): Router {
  const router = express.Router();
  router.use((request, response, next) => {
    response.set(OPEN_HEADERS);
    if (request.method === "OPTIONS") return void response.set(PREFLIGHT_HEADERS).status(204).end();
    next();
  });
  router.head("/:id", (request, response) => answerHead(options, request, response));
  router.get("/:id", (request, response) => give(options, request, response));
  router.get("/:id/proof", (request, response) => giveProof(options, request, response));
  router.patch("/:id", async (request, response) => {
    await takeUpload(options, request, response);
    // What was answered before its end must still end.
    if (!request.complete) limitBody(request);
  });
  router.use((request, response) => {
    limitBody(request);
    refuse(response, { kind: "methodNotAllowed", message: "Use GET, HEAD or PATCH of /v1/objects/ID." });
  });
  return router;
}

const OPEN_HEADERS = {
  "Access-Control-Allow-Origin": "*",
  "Access-Control-Expose-Headers": "*",
  "Cross-Origin-Resource-Policy": "cross-origin",
  "Timing-Allow-Origin": "*",
  "Cache-Control": "no-store",
  "X-Content-Type-Options": "nosniff",
  "Content-Security-Policy": SANDBOX,
};
const PREFLIGHT_HEADERS = {
  "Access-Control-Allow-Methods": "GET, HEAD, PATCH",
  "Access-Control-Allow-Headers":
    "Authorization, Content-Type, If-Match, If-None-Match, If-Range, Range, Upload-Offset",
  "Access-Control-Max-Age": "86400",
};

interface Wanted {
  store: ObjectStore;
  id: string;
  bytes: number;
}

/** Throws an `EgressError` if there is no such object to speak of. */
function wantedOf({ health, objects }: ObjectRoutesOptions, request: Request): Wanted {
  const id = String(request.params["id"]);
  const name = parseObjectId(id);
  if (!name) throw egressError("badRequest", "An object's id has 64 lower-case hex digits, a hyphen and its bytes.");
  const { status } = health();
  if (status !== "ok") throw egressError(status, `This proxy is ${status}.`);
  if (!objects) throw egressError("noLibrary", "This proxy has no library: it was started without --library.");
  return { store: objects, id, bytes: name.bytes };
}

function admitted(
  options: ObjectRoutesOptions,
  request: Request,
): { client: Client; allowance: Allowance | undefined } {
  const client = options.clientAt(request.ip ?? "");
  const { token } = request.query;
  const allowance = client.bytesRefusal() ?? options.admit(typeof token === "string" ? token : undefined);
  if (allowance && "kind" in allowance) throw new EgressError(allowance);
  return { client, allowance };
}

/** Answers with the error if it is one of ours. */
async function answering(response: Response, answer: () => void | Promise<void>): Promise<void> {
  try {
    await answer();
  } catch (error) {
    if (!(error instanceof EgressError)) throw error;
    refuse(response, error.rejection);
  }
}

function typeOf({ query: { type } }: Request): string {
  if (type === undefined) return "application/octet-stream";
  if (typeof type === "string" && type.length <= PUBLICATION_LIMITS.typeChars && MEDIA_TYPE.test(type)) return type;
  throw egressError("badRequest", `type must be a media type, as video/mp4; got ${JSON.stringify(type)}.`);
}

/** A range counts if it is one range, and if `If-Range` has this object's tag (RFC 9110 §13.1.5, §14.2). */
function rangeOf({ headers }: Request, etag: string): RangeRequest | undefined {
  const ifRange = headers["if-range"];
  return ifRange === undefined || ifRange === etag ? parseRange(headers.range) : undefined;
}

function isKnown({ headers }: Request, etag: string): boolean {
  const tags = headers["if-none-match"]?.split(",").map((tag) => tag.trim().replace(/^W\//, "")) ?? [];
  return tags.includes(etag) || tags.includes("*");
}

function give(options: ObjectRoutesOptions, request: Request, response: Response): Promise<void> {
  return answering(response, () => {
    const { store, id } = wantedOf(options, request);
    const { client, allowance } = admitted(options, request);
    const type = typeOf(request);
    if (!store.library.has(id)) throw missing(id);
    const headers = objectHeaders(id);
    const etag = headers["etag"]!;
    if (isKnown(request, etag)) return void response.set(headers).status(304).end();
    const { chunks, shaper, log } = options;
    options.onDelivery(1);
    new HttpDelivery({
      response,
      wanted: { url: objectAddress(id), range: rangeOf(request, etag), client },
      gives: { kind: "whole" },
      chunks,
      shaper,
      log,
      allowance,
      writeHead: (head) => writeHead(response, head, type),
      onEnded: (failure) => options.onDelivery(-1, failure),
      refuse: (rejection) => refuse(response, rejection),
    });
  });
}

function writeHead(response: Response, { status, headers, totalBytes }: OriginHead, type: string): void {
  response.status(status);
  for (const name of ["etag", "accept-ranges", "content-range"])
    if (headers[name] !== undefined) response.setHeader(name, headers[name]);
  if (status !== 416) response.set({ "Cache-Control": headers["cache-control"], "Content-Type": type });
  response.setHeader("Content-Length", totalBytes ?? 0);
  response.flushHeaders();
}

/** With a grant: how far the upload is. Without one: the head of the object. */
function answerHead(options: ObjectRoutesOptions, request: Request, response: Response): Promise<void> {
  return answering(response, () => {
    const { store, id, bytes } = wantedOf(options, request);
    const { authorization } = request.headers;
    if (authorization === undefined) admitted(options, request);
    else checkGrant(store, authorization, id);
    const isHere = store.library.has(id);
    if (authorization === undefined && !isHere) throw missing(id);
    if (authorization !== undefined) {
      store.library.pin([id], true);
      response.setHeader("Upload-Offset", store.uploads.offsetOf(id));
      if (!isHere) return void response.status(204).end();
    }
    response.set({ ...objectHeaders(id), "Content-Type": typeOf(request), "Content-Length": String(bytes) });
    response.status(200).end();
  });
}

function checkGrant(store: ObjectStore, authorization: string | undefined, id: string): void {
  const fault = store.grantFault(authorization, id);
  if (fault) throw new EgressError(fault);
}

function giveProof(options: ObjectRoutesOptions, request: Request, response: Response): Promise<void> {
  return answering(response, async () => {
    const { store, id, bytes } = wantedOf(options, request);
    const { client, allowance } = admitted(options, request);
    const { first, last } = piecesOf(request, pieceCountOf(bytes));
    const tree = await store.library.treeOf(id);
    const proofs = Array.from({ length: last - first + 1 }, (_, index) => tree.proofOf(first + index));
    const body = Buffer.concat(proofs);
    if (allowance) allowance.leftBytes -= body.length;
    client.noteSent(body.length);
    options.shaper.debit(body.length);
    response.set({ ...objectHeaders(id), "Content-Type": "application/octet-stream" });
    response.removeHeader("accept-ranges");
    response.end(body);
  });
}

function piecesOf({ query }: Request, pieceCount: number): { first: number; last: number } {
  const [first, last] = [query["first"], query["last"]].map((text) =>
    /^\d{1,15}$/.test(String(text)) ? Number(text) : NaN,
  );
  const isRight = first! <= last! && last! < pieceCount && last! - first! < PIECES_MAX;
  if (isRight) return { first: first!, last: last! };
  const message = `Give first and last: pieces from 0 to ${pieceCount - 1}, at most ${PIECES_MAX} at once.`;
  throw egressError("badRange", message);
}

function takeUpload(options: ObjectRoutesOptions, request: Request, response: Response): Promise<void> {
  return answering(response, async () => {
    const { store, id } = wantedOf(options, request);
    checkGrant(store, request.headers.authorization, id);
    const offset = offsetOf(request);
    // The iterator must not end the connection, because the answer goes over it.
    const body = request.iterator({ destroyOnReturn: false }) as AsyncIterable<Uint8Array>;
    const clientName = options.clientAt(request.ip ?? "").name;
    try {
      const taken = await store.uploads.take({ id, offset, body, clientName });
      response.setHeader("Upload-Offset", taken.offset);
      response.status(taken.isComplete ? 201 : 204).end();
    } catch (error) {
      if (request.destroyed && !request.complete) return;
      if (!response.headersSent) response.setHeader("Upload-Offset", store.uploads.offsetOf(id));
      throw error;
    }
  });
}

function offsetOf({ headers }: Request): number {
  const text = headers["upload-offset"];
  if (typeof text === "string" && /^\d{1,15}$/.test(text)) return Number(text);
  throw egressError("badRequest", `Upload-Offset must be a number of bytes; got ${JSON.stringify(text)}.`);
}
