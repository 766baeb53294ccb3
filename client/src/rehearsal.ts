/**
 * Rehearsal: an imitated download inside the engine's worker, before the first real one. A JavaScript engine compiles a
 * function on its first call and optimises it after many calls. Without a rehearsal, the code that handles packets
 * would be slow for the first segment of a player, whose packets come all at once. It costs an idle worker some tens of
 * ms.
 */
import { LIMITS, parseFrame, Sender, xorshift128, type ChunkSource, type Codec } from "@tributary/protocol";
import { sha256 } from "@noble/hashes/sha2";
import { Engine, type Hash } from "./engine";
import { unpack, type FromEngine } from "./messages";

const BYTES = 400_000;
const SESSIONS = [1, 2];
/** One packet of this many is lost, so that the decoder has work. */
const LOSS_EVERY = 16;
const ROUNDS_MAX = 2000;

/** Each step plays one millisecond of the download. The generator ends when the download ends, or by `return`. */
export function* rehearse(codec: Codec, hash: Hash = sha256): Generator<void, void, void> {
  const senders = new Map<number, Sender>();
  const zeros = new Uint8Array(BYTES);
  const source: ChunkSource = {
    totalBytes: BYTES,
    availableBytes: BYTES,
    view: (start, end) => zeros.subarray(start, end),
    digest: (start, end) => hash(zeros.subarray(start, end)).subarray(0, LIMITS.digestBytes),
  };
  const asked: { session: number; bytes: Uint8Array }[] = [];
  const engine = new Engine(
    codec,
    (message: FromEngine) => {
      if (message.type === "send")
        for (const bytes of unpack(message.frames)) asked.push({ session: message.session, bytes });
    },
    hash,
  );
  const answer = (session: number, bytes: Uint8Array, nowMs: number): void => {
    const frame = parseFrame(bytes);
    if (frame.type === "request" && !senders.has(session)) {
      const sender = new Sender({ request: frame, codec, rng: xorshift128(session), nowMs });
      senders.set(session, sender);
      sender.handlePlan({ status: 200, totalBytes: BYTES, headers: {}, serverFetchMs: 0 }, source);
    } else if (frame.type !== "parseError") senders.get(session)?.handleFrame(frame, nowMs);
  };
  engine.handle(
    { type: "start", requestId: 1, sessions: SESSIONS, options: { url: "http://rehearsal.invalid/", mode: "coded" } },
    0,
  );
  for (const proxyIndex of SESSIONS.keys()) engine.handle({ type: "ready", requestId: 1, proxyIndex }, 0);
  try {
    for (let nowMs = 0, packets = 0; engine.openCount > 0 && nowMs < ROUNDS_MAX; nowMs++) {
      for (const { session, bytes } of asked.splice(0)) answer(session, bytes, nowMs);
      for (const [session, sender] of senders) {
        const bytes = sender.pollTransmit(nowMs);
        if (bytes && ++packets % LOSS_EVERY > 0) engine.receive([[session, [bytes]]], nowMs);
      }
      if ((engine.pollTimeout() ?? Infinity) <= nowMs) engine.handleTimeout(nowMs);
      yield;
    }
  } finally {
    engine.handle({ type: "abort", requestId: 1 }, ROUNDS_MAX);
    for (const sender of senders.values()) sender.free();
  }
}
