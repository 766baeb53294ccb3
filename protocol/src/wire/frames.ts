/**
 * Turns frames into bytes and back: docs/spec/protocol.md §4. `parseFrame` accepts any bytes and never throws. A frame
 * that it returns obeys every limit, so code behind it checks no length again. All numbers are big-endian.
 */
import { type ByteRange, type Rejection, rejectionOf } from "@tributary/contract";
import { DIGEST_BYTES } from "@tributary/contract/tree";
import { LIMITS, PROTOCOL_VERSION, SHARING_VERSION } from "../limits";
import { rejection } from "../geometry";
import type {
  Coding,
  DataFrame,
  DigestFrame,
  FeedbackFrame,
  FinalReason,
  Frame,
  GenerationSpan,
  GrantedRun,
  GrantFrame,
  ParseError,
  PlanHead,
  ProofFrame,
  RequestFrame,
  Sharing,
} from "../types";
import { Malformed, Reader, refuse } from "./reader";

export const FRAME_TYPE = {
  request: 0x01,
  pending: 0x02,
  plan: 0x03,
  reject: 0x04,
  end: 0x05,
  digest: 0x06,
  proof: 0x07,
  partPlan: 0x08,
  dataSystematic: 0x10,
  dataSeed: 0x11,
  dataVector: 0x12,
  feedback: 0x20,
  grant: 0x21,
  digestsHeard: 0x22,
  proofHeard: 0x23,
  ping: 0x30,
  pong: 0x31,
} as const;

const MODES = ["uncoded-mutp", "coded-mutp", "coded"] as const;
const REASONS: readonly FinalReason[] = ["none", "complete", "aborted", "rejected"];
const U48_MAX = 2 ** 48 - 1;
const FLAG_RANGE = 1;
const FLAG_SHARE = 2;
const FLAG_TOKEN = 4;
const FLAG_NO_CACHE = 8;
const FLAG_NO_STORE = 16;
const FLAG_DIGESTS = 32;
const FLAG_PAGE_ORIGIN = 64;
const FLAG_PROOFS = 128;
const FLAG_GOT = 1;
const FLAG_LIMIT = 2;
const FLAG_FINAL = 1;
const FLAG_DEGREES = 2;

const utf8 = new TextEncoder();

/** Bytes of a data frame before its payload. */
export function dataHeaderBytes(coding: Coding["kind"], symbolCount: number): number {
  if (coding === "systematic") return 13;
  return coding === "seed" ? 16 : 12 + symbolCount;
}

// ---- reading -------------------------------------------------------------------------------------

/** The id of a frame's request, read without parsing, to route the frame. Undefined for pings and short frames. */
export function requestIdOf(bytes: Uint8Array): number | undefined {
  const type = bytes[0];
  const at = type === FRAME_TYPE.request ? 2 : 1;
  if (type === undefined || type === FRAME_TYPE.ping || type === FRAME_TYPE.pong || bytes.length < at + 4)
    return undefined;
  return new DataView(bytes.buffer, bytes.byteOffset + at, 4).getUint32(0);
}

export function parseFrame(bytes: Uint8Array): Frame | ParseError {
  if (bytes.length > LIMITS.messageBytesMax) {
    return {
      type: "parseError",
      rejection: rejection("frameTooLong", "The frame is too long", bytes.length, LIMITS.messageBytesMax),
    };
  }
  const reader = new Reader(bytes);
  try {
    return parseBody(reader, bytes.length);
  } catch (error) {
    if (!(error instanceof Malformed)) throw error;
    const parseError: ParseError = { type: "parseError", rejection: error.rejection };
    if (reader.requestId !== undefined) parseError.requestId = reader.requestId;
    return parseError;
  }
}

function parseBody(reader: Reader, frameBytes: number): Frame {
  const type = reader.u8();
  if (type === FRAME_TYPE.ping || type === FRAME_TYPE.pong) {
    const token = reader.u32();
    reader.end();
    return { type: type === FRAME_TYPE.ping ? "ping" : "pong", token };
  }
  const version = type === FRAME_TYPE.request ? reader.u8() : PROTOCOL_VERSION;
  const requestId = (reader.requestId = reader.u32());
  const isSharing = type === FRAME_TYPE.request && version === SHARING_VERSION;
  if (version !== PROTOCOL_VERSION && !isSharing) {
    refuse("versionUnsupported", "The protocol version is not supported", version, PROTOCOL_VERSION);
  }
  switch (type) {
    case FRAME_TYPE.request:
      return parseRequest(reader, requestId, isSharing);
    case FRAME_TYPE.pending:
      reader.end();
      return { type: "pending", requestId };
    case FRAME_TYPE.plan:
      return parsePlan(reader, requestId, false);
    case FRAME_TYPE.partPlan:
      return parsePlan(reader, requestId, true);
    case FRAME_TYPE.reject:
      return parseReject(reader, requestId);
    case FRAME_TYPE.end: {
      const sentPackets = reader.u32();
      reader.end();
      return { type: "end", requestId, sentPackets };
    }
    case FRAME_TYPE.digest:
      return parseDigest(reader, requestId);
    case FRAME_TYPE.digestsHeard: {
      const digestCount = reader.u16();
      reader.end();
      return { type: "digestsHeard", requestId, digestCount };
    }
    case FRAME_TYPE.proof:
      return parseProof(reader, requestId);
    case FRAME_TYPE.proofHeard: {
      const digestCount = reader.u32();
      reader.end();
      return { type: "proofHeard", requestId, digestCount };
    }
    case FRAME_TYPE.dataSystematic:
    case FRAME_TYPE.dataSeed:
    case FRAME_TYPE.dataVector:
      return parseData(reader, requestId, type, frameBytes);
    case FRAME_TYPE.feedback:
      return parseFeedback(reader, requestId);
    case FRAME_TYPE.grant:
      return parseGrant(reader, requestId);
    default:
      return refuse("frameTypeUnknown", "The frame type is not known", type, FRAME_TYPE.pong);
  }
}

function parseRequest(reader: Reader, requestId: number, isSharing: boolean): RequestFrame {
  const mode = MODES[reader.within(reader.u8(), 0, MODES.length - 1, "mode")]!;
  const symbolBytes = reader.within(reader.u16(), LIMITS.symbolBytesMin, LIMITS.symbolBytesMax, "symbolBytes");
  const generationSize = reader.within(reader.u16(), 1, LIMITS.generationSizeMax, "generationSize");
  const windowPackets = reader.within(reader.u16(), 1, LIMITS.windowPacketsMax, "windowPackets");
  const flags = reader.u8();
  let range: ByteRange | undefined;
  if (flags & FLAG_RANGE) {
    range = { start: reader.u48(), end: reader.u48() };
    if (range.end < range.start) refuse("rangeInverted", "The range ends before it starts", range.end, range.start);
  }
  const share =
    flags & FLAG_SHARE ? { start: reader.u16(), end: reader.u16(), firstGeneration: reader.u16() } : undefined;
  if (share && share.end < share.start)
    refuse("shareInverted", "The share ends before it starts", share.end, share.start);
  if (share === undefined && mode === "coded")
    refuse("shareMissing", "Mode coded needs a share: flags", flags, FLAG_SHARE);
  const token = flags & FLAG_TOKEN ? reader.text(reader.u16(), LIMITS.tokenBytesMax, "token") : undefined;
  const pageOrigin =
    flags & FLAG_PAGE_ORIGIN ? reader.text(reader.u16(), LIMITS.pageOriginBytesMax, "pageOrigin") : undefined;
  const url = reader.text(reader.u16(), LIMITS.urlBytesMax, "url");
  const sharing = isSharing ? parseSharing(reader) : undefined;
  reader.end();
  const frame: RequestFrame = { type: "request", requestId, mode, symbolBytes, generationSize, windowPackets, url };
  if (range) frame.range = range;
  if (share) frame.share = share;
  if (token !== undefined) frame.token = token;
  if (pageOrigin !== undefined) frame.pageOrigin = pageOrigin;
  if (flags & FLAG_NO_STORE) frame.cache = "no-store";
  else if (flags & FLAG_NO_CACHE) frame.cache = "no-cache";
  if (flags & FLAG_DIGESTS) frame.digests = true;
  if (flags & FLAG_PROOFS) frame.proofs = true;
  if (sharing) frame.sharing = sharing;
  return frame;
}

function parseSharing(reader: Reader): Sharing {
  const ownIndex = reader.u8();
  const firstGenerations = reader.u16();
  const count = reader.within(reader.u8(), 1, LIMITS.readersMax, "readerCount");
  const readers: Sharing["readers"][number][] = [];
  while (readers.length < count) {
    const weight = reader.within(reader.u16(), 1, 65535, "readerWeight");
    readers.push({ weight, id: reader.text(reader.u8(), LIMITS.readerIdBytesMax, "readerId") });
  }
  reader.within(ownIndex, 0, count - 1, "readerIndex");
  return { ownIndex, firstGenerations, readers };
}

function parseGrant(reader: Reader, requestId: number): GrantFrame {
  const grantSequence = reader.u32();
  const fromSequence = reader.u32();
  const base = reader.u16();
  const count = reader.within(reader.u16(), 0, LIMITS.grantRunsMax, "runCount");
  const runs: GrantedRun[] = [];
  while (runs.length < count) runs.push({ generationIndex: reader.u16(), count: reader.u8() });
  reader.end();
  return { type: "grant", requestId, grantSequence, fromSequence, base, runs };
}

function parsePlan(reader: Reader, requestId: number, isOfPart: boolean): Frame {
  const status = reader.within(reader.u16(), 100, 599, "status");
  const totalBytes = reader.within(reader.u32(), 0, LIMITS.chunkBytesMax, "totalBytes");
  const serverFetchMs = reader.u32();
  const count = reader.within(reader.u8(), 0, LIMITS.planHeadersMax, "headerCount");
  const headers: Record<string, string> = {};
  for (let i = 0; i < count; i++) {
    const name = reader.text(reader.u8(), 255, "headerName");
    headers[name] = reader.text(reader.u16(), LIMITS.headerValueBytesMax, "headerValue");
  }
  const head: PlanHead = { status, totalBytes, headers, serverFetchMs };
  if (isOfPart) head.reads = parseSpans(reader);
  reader.end();
  return { type: "plan", requestId, head };
}

/** A list of spans is never empty. */
const NO_SPAN: GenerationSpan = { from: 0, end: 0 };

function parseSpans(reader: Reader): GenerationSpan[] {
  const count = reader.within(reader.u8(), 1, LIMITS.readSpansMax, "spanCount");
  const spans: GenerationSpan[] = [];
  while (spans.length < count) {
    const span = { from: reader.u16(), end: reader.u16() };
    if (span.end < span.from) refuse("spanInverted", "The span ends before it starts", span.end, span.from);
    spans.push(span);
  }
  return spans;
}

function parseDigest(reader: Reader, requestId: number): DigestFrame {
  const firstGeneration = reader.u16();
  const count = reader.within(reader.u8(), 1, LIMITS.digestsPerFrameMax, "digestCount");
  const digests: Uint8Array[] = [];
  while (digests.length < count) digests.push(reader.take(LIMITS.digestBytes));
  reader.end();
  return { type: "digest", requestId, firstGeneration, digests };
}

function parseProof(reader: Reader, requestId: number): ProofFrame {
  const firstDigest = reader.u32();
  const count = reader.within(reader.u8(), 1, LIMITS.proofDigestsPerFrameMax, "digestCount");
  const digests = reader.take(count * DIGEST_BYTES);
  reader.end();
  return { type: "proof", requestId, firstDigest, digests };
}

function parseReject(reader: Reader, requestId: number): Frame {
  const flags = reader.u8();
  const kind = reader.text(reader.u8(), 255, "kind");
  const value = rejectionOf(kind, reader.text(reader.u16(), LIMITS.rejectMessageBytesMax, "message"));
  if (flags & FLAG_GOT) value.got = reader.f64();
  if (flags & FLAG_LIMIT) value.limit = reader.f64();
  reader.end();
  return { type: "reject", requestId, rejection: value };
}

function parseData(reader: Reader, requestId: number, type: number, frameBytes: number): DataFrame {
  reader.within(frameBytes, 0, LIMITS.dataFrameBytesMax, "dataFrameBytes");
  const sequence = reader.u32();
  const generationIndex = reader.u16();
  let coding: Coding;
  if (type === FRAME_TYPE.dataSystematic) coding = { kind: "systematic", symbolIndex: reader.u8(), grant: reader.u8() };
  else if (type === FRAME_TYPE.dataSeed) coding = { kind: "seed", seed: reader.u32(), grant: reader.u8() };
  else {
    const count = reader.within(reader.u8(), 1, LIMITS.generationSizeMax, "coefficientCount");
    coding = { kind: "vector", coefficients: reader.take(count) };
  }
  const payload = reader.rest();
  reader.within(payload.length, LIMITS.symbolBytesMin, LIMITS.symbolBytesMax, "payloadBytes");
  return { type: "data", requestId, sequence, generationIndex, coding, payload };
}

function parseFeedback(reader: Reader, requestId: number): FeedbackFrame {
  const feedbackSequence = reader.u32();
  const epoch = reader.u32();
  const flags = reader.u8();
  const reason = REASONS[reader.within(reader.u8(), 0, REASONS.length - 1, "reason")]!;
  const nextSequence = reader.u32();
  const receivedPackets = reader.u32();
  const base = reader.u32();
  const count = reader.within(reader.u16(), 0, LIMITS.feedbackEntriesMax, "feedbackEntries");
  const received: FeedbackFrame["received"] =
    flags & FLAG_DEGREES
      ? { kind: "degreesOfFreedom", counts: reader.take(count) }
      : { kind: "symbols", count, bitmap: reader.take(Math.ceil(count / 8)) };
  reader.end();
  const final = (flags & FLAG_FINAL) !== 0;
  return {
    type: "feedback",
    requestId,
    feedbackSequence,
    epoch,
    final,
    reason,
    nextSequence,
    receivedPackets,
    base,
    received,
  };
}

// ---- writing -------------------------------------------------------------------------------------

class Writer {
  #position = 0;

  constructor(
    byteCount: number,
    readonly bytes: Uint8Array = new Uint8Array(byteCount),
  ) {}
  u8(value: number): this {
    this.bytes[this.#position++] = value;
    return this;
  }
  u16(value: number): this {
    return this.u8(value >>> 8).u8(value);
  }
  u32(value: number): this {
    return this.u16(value >>> 16).u16(value);
  }
  u48(value: number): this {
    if (value > U48_MAX)
      throw new RangeError(`A position in a resource travels in 48 bits: got ${value}, limit ${U48_MAX}.`);
    return this.u16(Math.floor(value / 2 ** 32)).u32(value % 2 ** 32);
  }
  f64(value: number): this {
    new DataView(this.bytes.buffer).setFloat64(this.#position, value);
    this.#position += 8;
    return this;
  }
  put(bytes: Uint8Array): this {
    this.bytes.set(bytes, this.#position);
    this.#position += bytes.length;
    return this;
  }
}

/** The bytes of a frame. The caller must keep the limits. A range position over 48 bits throws. */
export function encodeFrame(frame: Frame): Uint8Array {
  switch (frame.type) {
    case "request":
      return encodeRequest(frame);
    case "pending":
      return new Writer(5).u8(FRAME_TYPE.pending).u32(frame.requestId).bytes;
    case "plan": {
      const entries = Object.entries(frame.head.headers).map(
        ([name, value]) => [utf8.encode(name), utf8.encode(value)] as const,
      );
      const reads = frame.head.reads?.length === 0 ? [NO_SPAN] : frame.head.reads;
      const ownBytes = 16 + (reads ? 1 + 4 * reads.length : 0);
      const size = entries.reduce((sum, [name, value]) => sum + 3 + name.length + value.length, ownBytes);
      const writer = new Writer(size)
        .u8(reads ? FRAME_TYPE.partPlan : FRAME_TYPE.plan)
        .u32(frame.requestId)
        .u16(frame.head.status);
      writer.u32(frame.head.totalBytes).u32(Math.round(frame.head.serverFetchMs)).u8(entries.length);
      for (const [name, value] of entries) writer.u8(name.length).put(name).u16(value.length).put(value);
      if (reads) writer.u8(reads.length);
      for (const { from, end } of reads ?? []) writer.u16(from).u16(end);
      return writer.bytes;
    }
    case "reject":
      return encodeReject(frame.requestId, frame.rejection);
    case "end":
      return new Writer(9).u8(FRAME_TYPE.end).u32(frame.requestId).u32(frame.sentPackets).bytes;
    case "digest": {
      const writer = new Writer(8 + frame.digests.length * LIMITS.digestBytes).u8(FRAME_TYPE.digest);
      writer.u32(frame.requestId).u16(frame.firstGeneration).u8(frame.digests.length);
      for (const digest of frame.digests) writer.put(digest);
      return writer.bytes;
    }
    case "digestsHeard":
      return new Writer(7).u8(FRAME_TYPE.digestsHeard).u32(frame.requestId).u16(frame.digestCount).bytes;
    case "proof": {
      const { requestId, firstDigest, digests } = frame;
      const writer = new Writer(10 + digests.length).u8(FRAME_TYPE.proof).u32(requestId).u32(firstDigest);
      return writer.u8(digests.length / DIGEST_BYTES).put(digests).bytes;
    }
    case "proofHeard":
      return new Writer(9).u8(FRAME_TYPE.proofHeard).u32(frame.requestId).u32(frame.digestCount).bytes;
    case "data":
      return encodeData(frame);
    case "feedback":
      return encodeFeedback(frame);
    case "grant":
      return encodeGrant(frame);
    case "ping":
    case "pong":
      return new Writer(5).u8(FRAME_TYPE[frame.type]).u32(frame.token).bytes;
  }
}

function encodeRequest(frame: RequestFrame): Uint8Array {
  const url = utf8.encode(frame.url);
  const token = frame.token === undefined ? undefined : utf8.encode(frame.token);
  const pageOrigin = frame.pageOrigin === undefined ? undefined : utf8.encode(frame.pageOrigin);
  const textBytes = [token, pageOrigin].reduce((sum, text) => sum + (text ? 2 + text.length : 0), url.length);
  const readers = frame.sharing?.readers.map(({ id, weight }) => ({ weight, id: utf8.encode(id) })) ?? [];
  const sharingBytes = frame.sharing ? readers.reduce((sum, { id }) => sum + 3 + id.length, 4) : 0;
  const writer = new Writer(16 + (frame.range ? 12 : 0) + (frame.share ? 6 : 0) + textBytes + sharingBytes);
  writer
    .u8(FRAME_TYPE.request)
    .u8(frame.sharing ? SHARING_VERSION : PROTOCOL_VERSION)
    .u32(frame.requestId)
    .u8(MODES.indexOf(frame.mode));
  writer.u16(frame.symbolBytes).u16(frame.generationSize).u16(frame.windowPackets);
  const parts = (frame.range ? FLAG_RANGE : 0) | (frame.share ? FLAG_SHARE : 0) | (token ? FLAG_TOKEN : 0);
  const more =
    (frame.digests ? FLAG_DIGESTS : 0) | (pageOrigin ? FLAG_PAGE_ORIGIN : 0) | (frame.proofs ? FLAG_PROOFS : 0);
  writer.u8(parts | flagsOf(frame.cache) | more);
  if (frame.range) writer.u48(frame.range.start).u48(frame.range.end);
  if (frame.share) writer.u16(frame.share.start).u16(frame.share.end).u16(frame.share.firstGeneration);
  if (token) writer.u16(token.length).put(token);
  if (pageOrigin) writer.u16(pageOrigin.length).put(pageOrigin);
  writer.u16(url.length).put(url);
  if (frame.sharing) writer.u8(frame.sharing.ownIndex).u16(frame.sharing.firstGenerations).u8(readers.length);
  for (const { weight, id } of readers) writer.u16(weight).u8(id.length).put(id);
  return writer.bytes;
}

function flagsOf(cache: RequestFrame["cache"]): number {
  if (cache === "no-store") return FLAG_NO_CACHE | FLAG_NO_STORE;
  return cache === "no-cache" ? FLAG_NO_CACHE : 0;
}

function encodeReject(requestId: number, value: Rejection): Uint8Array {
  const kind = utf8.encode(value.kind);
  const message = truncateUtf8(value.message, LIMITS.rejectMessageBytesMax);
  const numbers = [value.got, value.limit].filter((number) => number !== undefined);
  const writer = new Writer(9 + kind.length + message.length + 8 * numbers.length);
  const flags = (value.got === undefined ? 0 : FLAG_GOT) | (value.limit === undefined ? 0 : FLAG_LIMIT);
  writer.u8(FRAME_TYPE.reject).u32(requestId).u8(flags).u8(kind.length).put(kind).u16(message.length).put(message);
  for (const number of numbers) writer.f64(number);
  return writer.bytes;
}

function truncateUtf8(text: string, byteLimit: number): Uint8Array {
  const { written } = utf8.encodeInto(text, new Uint8Array(byteLimit));
  return utf8.encode(text).subarray(0, written);
}

/** Writes a data frame into the memory that `memoryFor` gives. Without it the frame has its own memory. */
export function encodeData(frame: DataFrame, memoryFor?: (byteCount: number) => Uint8Array): Uint8Array {
  const { coding, payload } = frame;
  const count = coding.kind === "vector" ? coding.coefficients.length : 0;
  const byteCount = dataHeaderBytes(coding.kind, count) + payload.length;
  const writer = new Writer(byteCount, memoryFor?.(byteCount));
  const type =
    coding.kind === "systematic"
      ? FRAME_TYPE.dataSystematic
      : coding.kind === "seed"
        ? FRAME_TYPE.dataSeed
        : FRAME_TYPE.dataVector;
  writer.u8(type).u32(frame.requestId).u32(frame.sequence).u16(frame.generationIndex);
  if (coding.kind === "systematic") writer.u8(coding.symbolIndex).u8(coding.grant);
  else if (coding.kind === "seed") writer.u32(coding.seed).u8(coding.grant);
  else writer.u8(count).put(coding.coefficients);
  return writer.put(payload).bytes;
}

function encodeGrant({ requestId, grantSequence, fromSequence, base, runs }: GrantFrame): Uint8Array {
  const writer = new Writer(17 + 3 * runs.length).u8(FRAME_TYPE.grant).u32(requestId).u32(grantSequence);
  writer.u32(fromSequence).u16(base).u16(runs.length);
  for (const { generationIndex, count } of runs) writer.u16(generationIndex).u8(count);
  return writer.bytes;
}

function encodeFeedback(frame: FeedbackFrame): Uint8Array {
  const { received } = frame;
  const degrees = received.kind === "degreesOfFreedom";
  const body = degrees ? received.counts : received.bitmap;
  const writer = new Writer(29 + body.length)
    .u8(FRAME_TYPE.feedback)
    .u32(frame.requestId)
    .u32(frame.feedbackSequence)
    .u32(frame.epoch);
  writer.u8((frame.final ? FLAG_FINAL : 0) | (degrees ? FLAG_DEGREES : 0)).u8(REASONS.indexOf(frame.reason));
  writer.u32(frame.nextSequence).u32(frame.receivedPackets).u32(frame.base);
  return writer.u16(degrees ? received.counts.length : received.count).put(body).bytes;
}
