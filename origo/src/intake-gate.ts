/**
 * Intake gate: how much strangers may send. It reads the bodies of the intake's endpoints in place of express.json,
 * and counts their bytes after decompression while they arrive: over time, and in memory until the answer is sent. So
 * a small compressed body cannot become much work, and one address cannot take the share of the others.
 */
import { createGunzip } from "node:zlib";
import type { Request, RequestHandler, Response } from "express";
import type { Configuration } from "./configuration";
import { Refusal } from "./http";
import { limitKeyOf } from "./network";
import { RateLimit } from "./rate-limit";

/** Bursts of this length are allowed. */
const WINDOW_SEC = 10;
/** This many addresses are counted. */
const KEYS_MAX = 10_000;
/** An empty request costs as much as one with this many bytes. */
const REQUEST_BYTES_MIN = 1024;
/** The share of the memory that one address may take. */
const ADDRESS_SHARE = 1 / 4;
/** The intake's messages nest five deep. Parsing a deep list takes ten times as long as parsing a flat one. */
const DEPTH_MAX = 16;
/** A trace of 65,536 packets and as many feedback frames has fewer lists and objects. */
const PARTS_MAX = 150_000;
const EVERYONE = "";

/** The settings that limit a gate. */
export const INTAKE_LIMITS = {
  bytesPerSecPerAddress: "origo.intakeBytesPerSecPerAddress",
  bytesPerSec: "origo.intakeBytesPerSec",
  openBytesMax: "origo.intakeOpenBytesMax",
} as const;
export const PUBLISHING_LIMITS = {
  bytesPerSecPerAddress: "origo.publishBytesPerSecPerAddress",
  bytesPerSec: "origo.publishBytesPerSec",
  openBytesMax: "origo.publishOpenBytesMax",
} as const;

export interface IntakeGateOptions {
  configuration: Pick<Configuration, "value">;
  limits: typeof INTAKE_LIMITS | typeof PUBLISHING_LIMITS;
  nowMs: () => number;
}

export class IntakeGate {
  readonly #rate: RateLimit;
  readonly #rateOfAll: RateLimit;
  readonly #openBytes = new Map<string, number>();

  readonly #options: IntakeGateOptions;

  constructor(options: IntakeGateOptions) {
    this.#options = options;

    const { configuration, limits } = options;
    const windowMs = (): number => 1000 * WINDOW_SEC;
    this.#rate = new RateLimit({
      limit: () => WINDOW_SEC * configuration.value(limits.bytesPerSecPerAddress),
      windowMs,
      keysMax: KEYS_MAX,
    });
    this.#rateOfAll = new RateLimit({
      limit: () => WINDOW_SEC * configuration.value(limits.bytesPerSec),
      windowMs,
      keysMax: 1,
    });
  }

  /** Reads a JSON body of at most `bytesMax` bytes after decompression. */
  reader(bytesMax: number): RequestHandler {
    return async (request, response, next) => {
      request.body = parse(await this.read(request, response, bytesMax));
      next();
    };
  }

  /** Reads a body of at most `bytesMax` bytes after decompression. */
  async read(request: Request, response: Response, bytesMax: number): Promise<Buffer> {
    const key = limitKeyOf(request.ip ?? "");
    this.#checkRate(key);
    this.#count(key, REQUEST_BYTES_MIN);
    const announced = Number(request.headers["content-length"] ?? 0);
    if (announced > bytesMax) throw tooLarge(bytesMax, announced);
    let [bytes, isOpen] = [0, true];
    response.once("close", () => {
      isOpen = false;
      this.#hold(key, -bytes);
    });
    const pieces: Buffer[] = [];
    await readAll(request, (piece) => {
      if (!isOpen) throw new Error("the sender closed the connection");
      bytes += piece.length;
      this.#count(key, piece.length);
      this.#hold(key, piece.length);
      if (bytes > bytesMax) throw tooLarge(bytesMax);
      this.#checkOpen(key);
      pieces.push(piece);
    });
    return Buffer.concat(pieces);
  }

  #limit(which: keyof typeof INTAKE_LIMITS): number {
    const { configuration, limits } = this.#options;
    return configuration.value(limits[which]);
  }

  #count(key: string, bytes: number): void {
    const nowMs = this.#options.nowMs();
    this.#rate.add(key, nowMs, bytes);
    this.#rateOfAll.add(EVERYONE, nowMs, bytes);
  }

  #checkRate(key: string): void {
    const nowMs = this.#options.nowMs();
    const waitMs = this.#rate.waitMs(key, nowMs);
    if (waitMs > 0) throw later(429, waitMs, this.#limit("bytesPerSecPerAddress"));
    const waitOfAllMs = this.#rateOfAll.waitMs(EVERYONE, nowMs);
    if (waitOfAllMs > 0) throw later(503, waitOfAllMs, this.#limit("bytesPerSec"));
  }

  /** Adds to the bytes in memory, of this address and of all. */
  #hold(key: string, bytes: number): void {
    for (const each of [key, EVERYONE]) {
      const sum = (this.#openBytes.get(each) ?? 0) + bytes;
      if (sum > 0) this.#openBytes.set(each, sum);
      else this.#openBytes.delete(each);
    }
  }

  #checkOpen(key: string): void {
    const limit = this.#limit("openBytesMax");
    const own = this.#openBytes.get(key) ?? 0;
    if (own > limit * ADDRESS_SHARE) throw busy(429, "one address", own, limit * ADDRESS_SHARE);
    const all = this.#openBytes.get(EVERYONE) ?? 0;
    if (all > limit) throw busy(503, "all addresses", all, limit);
  }
}

function later(status: 429 | 503, waitMs: number, limit: number): Refusal {
  const seconds = Math.ceil(waitMs / 1000);
  const who = status === 429 ? "this address sends" : "all addresses together send";
  const message = `${who} more than ${limit} bytes a second: send again in ${seconds} s`;
  return new Refusal(status, { kind: "tooFast", message, limit }, { "Retry-After": String(seconds) });
}

function busy(status: 429 | 503, who: string, got: number, limit: number): Refusal {
  const message = `${got} bytes of ${who} arrive or wait to be stored, the limit is ${limit}: send again later`;
  return new Refusal(status, { kind: "busy", message, got, limit }, { "Retry-After": "1" });
}

function tooLarge(limit: number, got?: number): Refusal {
  const size = got === undefined ? "is larger than" : `has ${got} bytes, more than`;
  const message = `the body ${size} the limit of ${limit} bytes: send less at a time`;
  return new Refusal(413, { kind: "bodyTooLarge", message, ...(got === undefined ? {} : { got }), limit });
}

/** Gives the decompressed body in pieces. What `take` throws ends the reading. */
async function readAll(request: Request, take: (piece: Buffer) => void): Promise<void> {
  const encoding = (request.headers["content-encoding"] ?? "identity").toLowerCase();
  if (encoding !== "identity" && encoding !== "gzip")
    throw unsupported(`the body must be compressed by gzip or not at all, got ${encoding}`);
  const charset = /;\s*charset="?([^";\s]+)/i.exec(request.headers["content-type"] ?? "")?.[1] ?? "utf-8";
  if (charset.toLowerCase() !== "utf-8") throw unsupported(`the body must be UTF-8, got ${charset}`);
  const unpacked = encoding === "gzip" ? request.pipe(createGunzip()) : undefined;
  request.once("close", () => request.complete || unpacked?.destroy(new Error("the sender closed the connection")));
  const pieces: AsyncIterable<Buffer> = unpacked ?? request.iterator({ destroyOnReturn: false });
  try {
    for await (const piece of pieces) take(piece);
  } catch (error) {
    if (error instanceof Refusal) throw error;
    throw new Refusal(400, { kind: "badRequest", message: `the body cannot be read: ${(error as Error).message}` });
  } finally {
    if (unpacked) request.unpipe(unpacked);
    // The rest of a refused body is read and dropped, so that the sender gets the answer.
    request.resume();
  }
}

const unsupported = (message: string): Refusal => new Refusal(415, { kind: "unsupportedMediaType", message });

function parse(body: Buffer): unknown {
  checkShape(body);
  try {
    return JSON.parse(body.toString()) as unknown;
  } catch (error) {
    throw new Refusal(400, { kind: "badJson", message: `the body is not JSON: ${(error as Error).message}` });
  }
}

const [QUOTE, BACKSLASH, OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = Buffer.from('"\\[]{}');

/** Refuses JSON that would take long to parse, by a look at its brackets. */
function checkShape(body: Buffer): void {
  let [depth, parts, inText] = [0, 0, false];
  for (let at = 0; at < body.length; at++) {
    const byte = body[at];
    if (inText) {
      if (byte === BACKSLASH) at++;
      else if (byte === QUOTE) inText = false;
    } else if (byte === QUOTE) inText = true;
    else if (byte === OPEN_LIST || byte === OPEN_OBJECT) {
      parts++;
      if (++depth > DEPTH_MAX) throw tooManyParts("nests deeper than", DEPTH_MAX);
    } else if (byte === CLOSE_LIST || byte === CLOSE_OBJECT) depth--;
  }
  if (parts > PARTS_MAX) throw tooManyParts("has more lists and objects than", PARTS_MAX);
}

const tooManyParts = (how: string, limit: number): Refusal =>
  new Refusal(400, { kind: "badJson", message: `the body ${how} the limit of ${limit}`, limit });
