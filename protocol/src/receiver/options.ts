/**
 * ReceiverOptions: the settings of a receiver, and the request that follows from them. Rules: protocol.md §3
 * and §4.1.
 */
import type { ByteRange, CacheMode } from "@tributary/contract";
import { BLOCK_BYTES, type ObjectName } from "@tributary/contract/tree";
import type { Codec } from "../codec";
import { LIMITS } from "../limits";
import type { Beginning, KnownPath } from "../planner/known";
import type { MutpMode, RequestFrame } from "../types";
import { encodeFrame, parseFrame } from "../wire/frames";
import { sharingOf, type Parts } from "./parts";
import type { PacketFate } from "./proxy-state";

/** Called for each data frame as it is counted. A frame that could not be read has generation 0. */
export type OnPacket = (atMs: number, proxyIndex: number, generationIndex: number, fate: PacketFate) => void;

export interface ReceiverOptions {
  requestId: number;
  /** Shown to every proxy. */
  token?: string;
  url: string;
  range?: ByteRange;
  cache?: CacheMode;
  pageOrigin?: string;
  mode: MutpMode;
  proxyCount: number;
  /** Who runs each proxy: what proxies of one operator say counts once. By default somebody else runs each. */
  operators?: readonly string[];
  codec: Codec;
  nowMs: number;
  symbolBytes?: number;
  generationSize?: number;
  /** The paper's w, in packets. */
  windowPackets?: number;
  /** A proxy gets feedback after this many packets from it (the paper's F) ... */
  feedbackEveryPackets?: number;
  /** ... or this long after the first progress that was not reported to it yet (the paper's T). */
  feedbackEveryMs?: number;
  /** The caller makes a new session to a proxy that fell silent. Then silence alone fails no request. */
  renewsSessions?: boolean;
  /** Mode `coded`: what is known of each proxy. */
  known?: readonly (KnownPath | undefined)[];
  /**
   * The object that `url` names. It needs `hash`. Only its bytes are handed on. The range must be whole blocks, and so
   * are generations.
   */
  object?: ObjectName;
  /**
   * SHA-256. With it and without an object, several proxies are asked for the digests of what they fetched, and only
   * bytes on which they agree are handed on. A single proxy is believed.
   */
  hash?: (bytes: Uint8Array) => Uint8Array;
  /**
   * Mode `coded`: the proxies read the chunk from its origin together, once, and get from each other what they lack.
   * The ids of the proxies by Origo's list. Each proxy is then believed.
   */
  sharing?: readonly string[];
  /** With `sharing` and without a range: the length of the body, as earlier ones make it likely. */
  expectedBytes?: number;
  onPacket?: OnPacket;
}

export function requestOf(options: ReceiverOptions): RequestFrame {
  const coded = options.mode === "coded";
  const { symbolBytes, generationSize } = sizesOf(options);
  return {
    type: "request",
    requestId: options.requestId,
    mode: options.mode,
    symbolBytes,
    generationSize,
    windowPackets: options.windowPackets ?? (coded ? LIMITS.firstPacketsDefault : LIMITS.windowPacketsDefault),
    url: options.url,
    ...(options.range ? { range: options.range } : {}),
    ...(options.token === undefined ? {} : { token: options.token }),
    ...(options.cache === undefined ? {} : { cache: options.cache }),
    ...(options.pageOrigin === undefined ? {} : { pageOrigin: options.pageOrigin }),
    ...(wantsDigests(options) ? { digests: true } : {}),
    ...(options.object ? { proofs: true } : {}),
  };
}

/** For an object, sizes that do not make generations of whole blocks give way to the usual ones. */
function sizesOf(options: ReceiverOptions): Pick<RequestFrame, "symbolBytes" | "generationSize"> {
  const { object, mode } = options;
  const coded = mode === "coded" ? LIMITS.codedGenerationSizeDefault : undefined;
  if (!object) {
    const { symbolBytes = LIMITS.symbolBytesDefault } = options;
    const usual = options.sharing ? LIMITS.sharedGenerationSizeDefault : (coded ?? LIMITS.generationSizeDefault);
    return { symbolBytes, generationSize: options.generationSize ?? usual };
  }
  const { symbolBytes = LIMITS.objectSymbolBytes } = options;
  const { generationSize = coded ?? LIMITS.objectGenerationSizeDefault } = options;
  if ((symbolBytes * generationSize) % BLOCK_BYTES === 0) return { symbolBytes, generationSize };
  return { symbolBytes: LIMITS.objectSymbolBytes, generationSize: coded ?? LIMITS.objectGenerationSizeDefault };
}

/** An object's digests come with proofs, and a single proxy has nobody to agree with. */
export function wantsDigests({ hash, object, proxyCount }: ReceiverOptions): boolean {
  return hash !== undefined && object === undefined && proxyCount > 1;
}

/** Throws if the proxies' parser would refuse the request. */
export function checkRequest(request: RequestFrame, { share }: Beginning, parts: Parts | undefined): void {
  const shared = parts ? { sharing: sharingOf(parts, 0) } : {};
  const checked = parseFrame(encodeFrame(request.mode === "coded" ? { ...request, ...shared, share } : request));
  if (checked.type === "parseError") throw new RangeError(checked.rejection.message);
}
