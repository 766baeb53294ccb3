import { createHash } from "node:crypto";
import { BLOCK_BYTES, hexOf, LeafMaker, Tree } from "@tributary/contract/tree";
import { loadWasmCodec } from "@tributary/wasm-codec/node";
import { encodeFrame, parseFrame } from "../wire/frames";
import { Conviction } from "@tributary/contract/conviction";
import { convictionOf, evidenceFault } from "@tributary/contract/evidence";
import type { ReceiverOptions } from "./options";
import type { ShownEvidence } from "./outcome";
import { Receiver } from "./receiver";
import { xorshift128 } from "../rng";
import { Sender } from "../sender/sender";
import type { DataFrame, FeedbackFrame, Frame, MutpMode } from "../types";

const codec = loadWasmCodec();
const SYMBOL_BYTES = 64;
const sha256 = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest();
const OBJECT_SYMBOL_BYTES = 1024;
const GENERATION_SIZE = 16;
/** Each block is one generation. The last one is short. */
const original = Uint8Array.from({ length: 12 * BLOCK_BYTES + 5 }, (_, i) => i * 31 + (i >> 8));
const leaves = new LeafMaker(sha256);
leaves.update(original);
const tree = new Tree(leaves.finish(), sha256);
const object = { root: hexOf(tree.root), bytes: original.length };
const head = { status: 200, totalBytes: original.length, headers: { etag: '"1"' }, serverFetchMs: 0 };
const source = {
  totalBytes: original.length,
  availableBytes: original.length,
  view: (start: number, end: number) => original.subarray(start, end),
  proof: (piece: number) => tree.proofOf(piece),
};

const receiverOf = (mode: MutpMode, proxyCount: number, given: Partial<ReceiverOptions> = {}) =>
  new Receiver({
    requestId: 1,
    url: "http://o/",
    mode,
    proxyCount,
    codec,
    nowMs: 0,
    symbolBytes: OBJECT_SYMBOL_BYTES,
    generationSize: GENERATION_SIZE,
    windowPackets: GENERATION_SIZE,
    object,
    hash: sha256,
    ...given,
  });

/** Runs until the end, a millisecond each way; `twist` makes of each proxy's frames what it likes. */
function exchange(
  receiver: Receiver,
  proxyCount: number,
  twist: (proxyIndex: number, frame: Frame) => Frame,
  untilMs = 20_000,
) {
  const senders: (Sender | undefined)[] = Array.from({ length: proxyCount });
  const received: number[] = [];
  const ends: string[] = [];
  const shown: ShownEvidence[] = [];
  for (let i = 0; i < proxyCount; i++) receiver.handleProxyReady(i, 0);
  for (let now = 0; now < untilMs && !receiver.finished; now++) {
    receiver.handleTimeout(now);
    for (let out = receiver.pollTransmit(now); out; out = receiver.pollTransmit(now)) {
      const frame = parseFrame(out.bytes) as Frame;
      if (frame.type === "request" && !senders[out.proxyIndex]) {
        senders[out.proxyIndex] = new Sender({
          request: frame,
          codec,
          rng: xorshift128(out.proxyIndex + 1),
          nowMs: now,
        });
        senders[out.proxyIndex]!.handlePlan(head, source);
      } else senders[out.proxyIndex]?.handleFrame(frame, now);
    }
    senders.forEach((sender, index) => {
      if (sender && (sender.pollTimeout() ?? Infinity) <= now) sender.handleTimeout(now);
      for (let sent = 0; sender && sent < 3; sent++) {
        const bytes = sender.pollTransmit(now);
        if (bytes) receiver.handleFrame(index, encodeFrame(twist(index, parseFrame(bytes) as Frame)), now);
      }
    });
    for (let event = receiver.pollEvent(); event; event = receiver.pollEvent()) {
      if (event.kind === "bytes") received.push(...event.bytes);
      else if (event.kind === "conviction") shown.push(event.evidence);
      else if (event.kind !== "head") ends.push(event.kind);
    }
  }
  return { received: Uint8Array.from(received), ends, shown, proxies: receiver.stats().proxies };
}

const lie = (frame: Frame): Frame =>
  frame.type === "data" ? { ...frame, payload: frame.payload.map((byte) => byte ^ 0x55) } : frame;

/** Why Origo would not believe the evidence. */
function faultIn(evidence: ShownEvidence): string | undefined {
  const publisher = { key: "A".repeat(43), name: "film" };
  const conviction = Conviction.parse(convictionOf(evidence, "p1", publisher, object));
  return evidenceFault(conviction, (text) => Buffer.from(text, "base64"), sha256);
}

describe.each<MutpMode>(["uncoded-mutp", "coded-mutp", "coded"])("verification: %s", (mode) => {
  test("three of four proxies send false packets, they are excluded, and the bytes are right", () => {
    const { received, ends, proxies, shown } = exchange(receiverOf(mode, 4), 4, (index, frame) =>
      index < 3 ? lie(frame) : frame,
    );
    expect(received).toEqual(original);
    expect(ends).toEqual(["complete"]);
    expect(shown.map(({ proxyIndex }) => proxyIndex).sort()).toEqual([0, 1, 2]);
    for (const evidence of shown) expect(faultIn(evidence)).toBeUndefined();
    expect(proxies.map(({ error }) => error?.kind === "digestMismatch")).toEqual([true, true, true, false]);
    for (const { packets, innovative, duplicate, late, rejected } of proxies)
      expect(packets).toBe(innovative + duplicate + late + rejected);
  });

  test("when every proxy lies, nothing is delivered and the request fails", () => {
    const { received, ends } = exchange(receiverOf(mode, 2), 2, (_, frame) => lie(frame));
    expect(received).toHaveLength(0);
    expect(ends).toEqual(["failed"]);
  });

  test("a false plan that comes first fails its own proxy and no other", () => {
    const { received, proxies } = exchange(receiverOf(mode, 2), 2, (index, frame) =>
      index === 0 && frame.type === "plan" ? { ...frame, head: { ...frame.head, totalBytes: 77 } } : frame,
    );
    expect(received).toEqual(original);
    expect(proxies.map(({ error }) => error?.kind)).toEqual(["planMismatch", undefined]);
  });
});

describe("verification of objects", () => {
  const corrupt = (frame: Frame): Frame =>
    frame.type === "proof"
      ? { ...frame, digests: frame.digests.map((byte, at) => (at === 40 ? byte ^ 1 : byte)) }
      : frame;

  test("proxies with a wrong proof are convicted, and the proof of any other will do", () => {
    const { received, ends, proxies } = exchange(receiverOf("coded", 4), 4, (index, frame) =>
      index < 3 ? corrupt(frame) : frame,
    );
    expect(received).toEqual(original);
    expect(ends).toEqual(["complete"]);
    expect(proxies.map(({ error }) => error?.kind)).toEqual(["proofWrong", "proofWrong", "proofWrong", undefined]);
  });

  test("when every proof is wrong, nothing is delivered", () => {
    const { received, ends, proxies } = exchange(receiverOf("coded", 2), 2, (_, frame) => corrupt(frame));
    expect(received).toHaveLength(0);
    expect(ends).toEqual(["failed"]);
    expect(proxies.map(({ error }) => error?.kind)).toEqual(["proofWrong", "proofWrong"]);
  });

  test("a proof that goes on after its end convicts its sender", () => {
    const { received, proxies } = exchange(receiverOf("coded", 2), 2, (index, frame) =>
      index === 0 && frame.type === "proof" ? { ...frame, firstDigest: frame.firstDigest + 60 } : frame,
    );
    expect(received).toEqual(original);
    expect(proxies.map(({ error }) => error?.kind)).toEqual(["proofWrong", undefined]);
  });

  test("a proxy without proofs is no liar, and its packets count", () => {
    const none: Frame = { type: "pending", requestId: 1 };
    const { received, proxies } = exchange(receiverOf("coded", 2), 2, (index, frame) =>
      index === 0 && frame.type === "proof" ? none : frame,
    );
    expect(received).toEqual(original);
    expect(proxies.map(({ error }) => error)).toEqual([undefined, undefined]);
    expect(proxies[0]!.innovative).toBeGreaterThan(0);
  });

  test("a range begins and ends with blocks", () => {
    expect(() => receiverOf("coded", 1)).not.toThrow();
    expect(() => receiverOf("coded", 1, { range: { start: 0, end: original.length - 1 } })).not.toThrow();
    expect(() => receiverOf("coded", 1, { range: { start: 0, end: 16_383 } })).not.toThrow();
    expect(() => receiverOf("coded", 1, { range: { start: 1, end: 16_383 } })).toThrow(/whole blocks.*got 1-16383/);
    expect(() => receiverOf("coded", 1, { range: { start: 0, end: 16_384 } })).toThrow(/got 0-16384/);
    expect(() => receiverOf("coded", 1, { range: { start: 0, end: original.length } })).toThrow(/got 0-/);
  });

  test("generations are whole blocks, whatever sizes the caller wants", () => {
    const receiver = receiverOf("coded", 1, { symbolBytes: 1000 });
    receiver.handleProxyReady(0, 0);
    const request = parseFrame(receiver.pollTransmit(0)!.bytes);
    expect(request).toMatchObject({ symbolBytes: 1024, generationSize: 128, proofs: true });
  });
});

test("sender: a new epoch takes back what was acknowledged, and an old one changes nothing", () => {
  const request = {
    type: "request",
    requestId: 1,
    mode: "coded-mutp",
    symbolBytes: SYMBOL_BYTES,
    generationSize: 8,
    windowPackets: 8,
    url: "http://o/",
  } as const;
  const sender = new Sender({ request, codec, rng: xorshift128(1), nowMs: 0 });
  sender.handlePlan(head, source);
  const sent = (): number[] => {
    const indexes: number[] = [];
    for (let bytes = sender.pollTransmit(0); bytes; bytes = sender.pollTransmit(0)) {
      const frame = parseFrame(bytes);
      if (frame.type === "data") indexes.push(frame.generationIndex);
    }
    return indexes;
  };
  const report = (epoch: number, feedbackSequence: number, base: number, degrees: number): FeedbackFrame => ({
    type: "feedback",
    requestId: 1,
    epoch,
    feedbackSequence,
    final: false,
    reason: "none",
    nextSequence: 0,
    receivedPackets: 0,
    base,
    received: { kind: "degreesOfFreedom", counts: Uint8Array.of(degrees) },
  });
  expect(sent()).toEqual(Array(8).fill(0));
  sender.handleFrame(report(0, 0, 1, 0), 0);
  expect(sent()).toEqual(Array(8).fill(1));
  sender.handleFrame(report(1, 1, 0, 3), 0);
  expect(sent()).toEqual(Array(5).fill(0));
  sender.handleFrame(report(0, 2, 2, 0), 0);
  expect(sent()).toEqual([]);
  sender.free();
});

test.each([
  ["silent", (receiver: Receiver) => receiver.handleTimeout(5000)],
  ["lost", (receiver: Receiver) => receiver.handleProxyLost(0, "closed", 5000)],
])("receiver: a proxy that was %s and whose session is then lost can come back", (_, befalls) => {
  const receiver = receiverOf("coded", 2);
  receiver.handleProxyReady(0, 0);
  while (receiver.pollTransmit(0)) continue;
  befalls(receiver);
  receiver.handleProxyLost(0, "closed", 5100);
  receiver.handleProxyReady(0, 6000);
  expect(receiver.stats().proxies[0]!.state).toBe("waiting");
  expect(receiver.pollTransmit(6000)).toMatchObject({ proxyIndex: 0 });
});

describe("receiver, mode coded", () => {
  const started = () => {
    const receiver = receiverOf("coded", 1);
    receiver.handleProxyReady(0, 0);
    while (receiver.pollTransmit(0)) continue;
    receiver.handleFrame(0, encodeFrame({ type: "plan", requestId: 1, head }), 10);
    return receiver;
  };
  const data = (sequence: number): DataFrame => ({
    type: "data",
    requestId: 1,
    sequence,
    generationIndex: 0,
    coding: { kind: "seed", seed: sequence, grant: 0 },
    payload: new Uint8Array(OBJECT_SYMBOL_BYTES),
  });

  test("a granted sequence is accepted, and a higher one is rejected", () => {
    const receiver = started();
    receiver.handleFrame(0, encodeFrame(data(15)), 20);
    expect(receiver.stats().proxies[0]).toMatchObject({ innovative: 1, rejected: 0 });
    receiver.handleFrame(0, encodeFrame(data(16)), 20);
    expect(receiver.stats().proxies[0]).toMatchObject({ innovative: 1, rejected: 1 });
  });

  test("a proxy whose packets were all lost is granted more than it has sent", () => {
    const receiver = started();
    let granted = 0;
    for (let now = 20; now < 3000; now += 10) {
      receiver.handleTimeout(now);
      for (let out = receiver.pollTransmit(now); out; out = receiver.pollTransmit(now)) {
        const frame = parseFrame(out.bytes);
        if (frame.type === "grant")
          granted = Math.max(granted, frame.fromSequence + frame.runs.reduce((sum, { count }) => sum + count, 0));
      }
    }
    expect(granted).toBeGreaterThan(2 * GENERATION_SIZE);
  });

  test("a lost plan is requested again, even while the proxy reports each second that it is alive", () => {
    const receiver = receiverOf("coded", 1);
    receiver.handleProxyReady(0, 0);
    let requests = 0;
    for (let now = 0; now < 6000; now += 10) {
      receiver.handleTimeout(now);
      for (let out = receiver.pollTransmit(now); out; out = receiver.pollTransmit(now)) requests++;
      if (now % 1000 === 20) receiver.handleFrame(0, encodeFrame({ type: "pending", requestId: 1 }), now);
    }
    expect(requests).toBeGreaterThanOrEqual(3);
  });
});
