/**
 * Senders and one receiver over simulated links, with the real codec: bytes, counts, ends and limits. Time, loss,
 * delay and every random choice come from the seed that the test's name carries.
 */
import { loadWasmCodec } from "@tributary/wasm-codec/node";
import { encodeFrame, parseFrame } from "./wire/frames";
import { LIMITS } from "./limits";
import { Pacer } from "./sender/pacer";
import type { ReceiverOptions } from "./receiver/options";
import type { ReceiverEvent } from "./receiver/outcome";
import { Receiver } from "./receiver/receiver";
import { xorshift128 } from "./rng";
import { Sender } from "./sender/sender";
import type { ChunkSource, MutpMode, PlanHead, Rng } from "./types";

const codec = loadWasmCodec();

interface Link {
  bytesPerSec: number;
  delayMs: number;
  jitterMs?: number;
  loss?: number;
  repeat?: number;
  /** The proxy stops at this time. It then receives and sends nothing. */
  diesAtMs?: number;
  /** Every n-th message to the client is replaced by garbage. */
  garbageEvery?: number;
  head?: Partial<PlanHead>;
  /** Body bytes reach the proxy at this rate; all are there at once without it. */
  originBytesPerSec?: number;
  /** The origin fails after this many bytes. */
  originFailsAt?: number;
}

interface Transfer {
  mode: MutpMode;
  bytes: number;
  links: Link[];
  seed: number;
  options?: Partial<ReceiverOptions>;
  untilMs?: number;
  abortAtMs?: number;
}

interface Outcome {
  received: Uint8Array;
  original: Uint8Array;
  events: ReceiverEvent[];
  receiver: Receiver;
  senders: (Sender | undefined)[];
  decidedMs: number | undefined;
}

function transfer({ mode, bytes, links, seed, options, untilMs = 60_000, abortAtMs }: Transfer): Outcome {
  const rng = xorshift128(seed);
  const chance = (share = 0) => rng() / 2 ** 32 < share;
  const original = Uint8Array.from({ length: bytes }, () => rng());
  const senders: (Sender | undefined)[] = links.map(() => undefined);
  const pacers = links.map((link) => new Pacer(link.bytesPerSec, 4_000, 0));
  const wire: { atMs: number; deliver(nowMs: number): void }[] = [];
  const receiver = new Receiver({
    requestId: 1,
    url: "http://o/seg",
    mode,
    proxyCount: links.length,
    codec,
    nowMs: 0,
    ...options,
  });
  const events: ReceiverEvent[] = [];
  const received: number[][] = [];
  let decidedMs: number | undefined;

  const carry = (
    link: Link,
    message: Uint8Array,
    nowMs: number,
    deliver: (bytes: Uint8Array, atMs: number) => void,
  ) => {
    if (chance(link.loss)) return;
    for (let copies = chance(link.repeat) ? 2 : 1; copies > 0; copies--) {
      const atMs = nowMs + link.delayMs + (link.jitterMs ? (rng() % 1000) * (link.jitterMs / 1000) : 0);
      wire.push({ atMs, deliver: (at) => deliver(message, at) });
    }
  };
  const atProxy = (index: number, message: Uint8Array, nowMs: number) => {
    const link = links[index]!;
    if (nowMs >= (link.diesAtMs ?? Infinity)) return;
    const frame = parseFrame(message);
    if (frame.type === "request" && !senders[index]) {
      senders[index] = new Sender({ request: frame, codec, rng: xorshift128(seed * 31 + index), nowMs });
      const head = { status: 200, totalBytes: bytes, headers: { etag: '"1"' }, serverFetchMs: 3, ...link.head };
      senders[index].handlePlan(
        head,
        growing(original, link, () => now),
      );
    } else if (frame.type !== "parseError") {
      const sender = senders[index];
      if (sender && !sender.finished) sender.handleFrame(frame, nowMs);
      else if (frame.type === "feedback" && frame.final) {
        carry(link, encodeFrame({ type: "end", requestId: 1, sentPackets: 0 }), nowMs, (m, at) =>
          receiver.handleFrame(index, m, at),
        );
      }
    }
  };

  let now = 0;
  let toClient = 0;
  links.forEach((_, index) => receiver.handleProxyReady(index, 0));
  for (; now < untilMs; now++) {
    wire.sort((a, b) => a.atMs - b.atMs);
    const due = wire.findIndex((message) => message.atMs > now);
    for (const message of wire.splice(0, due === -1 ? wire.length : due)) message.deliver(now);
    if (abortAtMs === now) receiver.abort(now);
    if ((receiver.pollTimeout() ?? Infinity) <= now) receiver.handleTimeout(now);
    for (let out = receiver.pollTransmit(now); out; out = receiver.pollTransmit(now)) {
      const { proxyIndex, bytes: message } = out;
      carry(links[proxyIndex]!, message, now, (m, at) => atProxy(proxyIndex, m, at));
    }
    senders.forEach((sender, index) => {
      const link = links[index]!;
      if (!sender || now >= (link.diesAtMs ?? Infinity)) return;
      if (link.originFailsAt !== undefined && now > 100) sender.handleFailure({ kind: "shortBody", message: "short" });
      if ((sender.pollTimeout() ?? Infinity) <= now) sender.handleTimeout(now);
      while (pacers[index]!.canSend(1157, now)) {
        const message = sender.pollTransmit(now);
        if (!message) break;
        pacers[index]!.take(message.length, now);
        const garbage = link.garbageEvery && ++toClient % link.garbageEvery === 0;
        carry(link, garbage ? garble(message, rng) : message, now, (m, at) => receiver.handleFrame(index, m, at));
      }
    });
    for (let event = receiver.pollEvent(); event; event = receiver.pollEvent()) {
      events.push(event);
      if (event.kind === "bytes") received.push([...event.bytes]);
      if (event.kind === "complete" || event.kind === "failed") decidedMs = now;
    }
    const over = senders.every(
      (sender, index) => !sender || sender.finished || now >= (links[index]!.diesAtMs ?? Infinity),
    );
    if (receiver.finished && over && wire.length === 0) break;
  }
  for (const { packets, innovative, duplicate, late, rejected } of receiver.stats().proxies) {
    expect(packets).toBe(innovative + duplicate + late + rejected);
  }
  return { received: Uint8Array.from(received.flat()), original, events, receiver, senders, decidedMs };
}

function growing(original: Uint8Array, link: Link, now: () => number): ChunkSource {
  return {
    totalBytes: link.head?.totalBytes ?? original.length,
    get availableBytes() {
      const limit = Math.min(original.length, link.originFailsAt ?? Infinity);
      return Math.min(limit, link.originBytesPerSec ? Math.floor((now() * link.originBytesPerSec) / 1000) : Infinity);
    },
    view: (start, end) => original.subarray(start, end),
  };
}

/** Unreadable or foreign, never a valid frame with a wrong payload: that is what digests are for. */
function garble(message: Uint8Array, rng: Rng): Uint8Array {
  return rng() % 2 ? message.slice(0, rng() % 12) : Uint8Array.from({ length: 40 }, () => rng() | 0x80);
}

const even = (count: number, link: Partial<Link> = {}): Link[] =>
  Array.from({ length: count }, () => ({ bytesPerSec: 896_000, delayMs: 20, ...link }));
const modes: MutpMode[] = ["uncoded-mutp", "coded-mutp", "coded"];

describe.each(modes)("transfer: %s", (mode) => {
  const whole = (outcome: Outcome) => {
    expect(outcome.events.at(-1)).toEqual({ kind: "complete" });
    expect(Buffer.compare(outcome.received, outcome.original)).toBe(0);
    expect(outcome.receiver.finished).toBe(true);
    expect(outcome.receiver.pollTimeout()).toBeUndefined();
  };

  test.each([0, 1, 63, 1099, 1100, 1101, 26_400, 26_401, 300_000])(
    "%i bytes arrive whole from four proxies (seed 1)",
    (bytes) => {
      const outcome = transfer({ mode, bytes, links: even(4), seed: 1 });
      whole(outcome);
      expect(outcome.senders.map((sender) => sender!.outcome)).toEqual(Array(4).fill("complete"));
    },
  );

  test.each([2, 3, 4])("10 % loss, jitter, repeats and reordering cost time but no bytes (seed %i)", (seed) => {
    whole(transfer({ mode, bytes: 300_000, links: even(3, { loss: 0.1, jitterMs: 30, repeat: 0.05 }), seed }));
  });

  test("a single link at 30 % loss still ends (seed 5)", () => {
    whole(transfer({ mode, bytes: 60_000, links: even(1, { loss: 0.3 }), seed: 5 }));
  });

  test("three of four proxies vanish half-way (seed 6)", () => {
    const links = even(4);
    for (const link of links.slice(1)) link.diesAtMs = 120;
    const outcome = transfer({ mode, bytes: 600_000, links, seed: 6 });
    whole(outcome);
    expect(outcome.receiver.stats().proxies[0]!.innovative).toBeGreaterThan(250);
  });

  test("a body that is still arriving is sent as it comes (seed 7)", () => {
    const outcome = transfer({ mode, bytes: 300_000, links: even(4, { originBytesPerSec: 600_000 }), seed: 7 });
    whole(outcome);
    const first = outcome.events.find((event) => event.kind === "bytes");
    expect(first).toBeDefined();
    expect(outcome.decidedMs!).toBeLessThan(500 + 150);
  });

  test("a proxy's garbage is counted and not believed (seed 8)", () => {
    const links = even(3);
    links[0]!.garbageEvery = 3;
    const outcome = transfer({ mode, bytes: 200_000, links, seed: 8 });
    whole(outcome);
    expect(outcome.receiver.stats().proxies.reduce((sum, proxy) => sum + proxy.rejected, 0)).toBeGreaterThan(5);
  });

  test("a proxy whose plan differs is left out (seed 9)", () => {
    const links = even(3);
    links[2]!.head = { totalBytes: 199_999 };
    links[2]!.delayMs = 40;
    const outcome = transfer({ mode, bytes: 200_000, links, seed: 9 });
    whole(outcome);
    expect(outcome.receiver.stats().proxies[2]).toMatchObject({ state: "failed", error: { kind: "planMismatch" } });
    expect(outcome.senders[2]!.outcome).toBe("aborted");
  });

  test("a short body at one origin fails only its proxy (seed 10)", () => {
    const links = even(2);
    links[0]!.originFailsAt = 50_000;
    whole(transfer({ mode, bytes: 200_000, links, seed: 10 }));
  });

  test("when every proxy fails, the request fails and nothing stays open (seed 11)", () => {
    const outcome = transfer({ mode, bytes: 200_000, links: even(2, { originFailsAt: 50_000 }), seed: 11 });
    expect(outcome.events.at(-1)).toMatchObject({ kind: "failed", rejection: { kind: "shortBody" } });
    expect(Buffer.compare(outcome.received, outcome.original.subarray(0, outcome.received.length))).toBe(0);
    expect(outcome.receiver.finished).toBe(true);
    expect(outcome.senders.every((sender) => sender!.finished)).toBe(true);
  });

  test("silence from all proxies is a failure within the silence limit (seed 12)", () => {
    const outcome = transfer({ mode, bytes: 200_000, links: even(2, { diesAtMs: 0 }), seed: 12 });
    expect(outcome.events.at(-1)).toMatchObject({ kind: "failed", rejection: { kind: "proxySilent" } });
    expect(outcome.decidedMs!).toBeLessThanOrEqual(4_001);
  });

  test("an abort reaches every proxy and ends both sides, even with loss (seed 13)", () => {
    const outcome = transfer({ mode, bytes: 900_000, links: even(3, { loss: 0.1 }), seed: 13, abortAtMs: 200 });
    expect(outcome.events.some((event) => event.kind === "complete" || event.kind === "failed")).toBe(false);
    expect(outcome.receiver.finished).toBe(true);
    expect(outcome.senders.map((sender) => sender!.outcome)).toEqual(Array(3).fill("aborted"));
  });

  test("a client that vanishes is forgotten after its silence limit (seed 14)", () => {
    const sender = new Sender({
      request: {
        type: "request",
        requestId: 1,
        mode,
        symbolBytes: 100,
        generationSize: 4,
        windowPackets: 8,
        url: "http://o/",
        share: { start: 0, end: 65535, firstGeneration: 0 },
      },
      codec,
      rng: xorshift128(14),
      nowMs: 0,
    });
    sender.handlePlan(
      { status: 200, totalBytes: 5_000, headers: {}, serverFetchMs: 0 },
      growing(new Uint8Array(5_000), even(1)[0]!, () => 0),
    );
    let sent = 0;
    for (let now = 0; !sender.finished; now = sender.pollTimeout()!) {
      sender.handleTimeout(now);
      while (sender.pollTransmit(now)) sent++;
      expect(now).toBeLessThanOrEqual(15_000);
    }
    expect(sender.outcome).toBe("timedOut");
    expect(sent).toBeLessThan(300);
  });

  test("a single clean link carries almost nothing twice (seed 15)", () => {
    const stats = transfer({ mode, bytes: 1_500_000, links: even(1), seed: 15 }).receiver.stats();
    expect(stats.proxies[0]!.packets / stats.symbolCount).toBeLessThan(1.02);
  });
});

test("transfer: with four sources, coding needs fewer packets than random order, as in the paper (seeds 20-24)", () => {
  const packets = (mode: MutpMode) =>
    [20, 21, 22, 23, 24].reduce((sum, seed) => {
      const { proxies } = transfer({ mode, bytes: 600_000, links: even(4), seed }).receiver.stats();
      return sum + proxies.reduce((all, proxy) => all + proxy.packets, 0);
    }, 0);
  expect(packets("coded-mutp")).toBeLessThan(packets("uncoded-mutp"));
  expect(packets("coded")).toBeLessThan(0.75 * packets("coded-mutp"));
});

test.each([
  [0, 30, 1.03, 0.99],
  [0.02, 31, 1.15, 0.95],
])(
  "transfer: coded, four unequal links with loss %d take little extra time and few repeats (seed %i)",
  (loss, seed, timeFactor, normalized) => {
    const links = even(4, { loss });
    links[0]!.bytesPerSec *= 2;
    const outcome = transfer({ mode: "coded", bytes: 1_500_000, links, seed });
    const { symbolCount, proxies } = outcome.receiver.stats();
    const boundMs = 40 + (symbolCount * 1116 * 1000) / (5 * 896_000 * (1 - loss));
    expect(outcome.decidedMs!).toBeLessThan(boundMs * timeFactor + 5);
    expect(symbolCount / proxies.reduce((sum, proxy) => sum + proxy.packets, 0)).toBeGreaterThan(normalized);
  },
);

test("transfer: coded, a proxy that dies costs at most its share and two round trips (seed 32)", () => {
  const links = even(4);
  links[3]!.diesAtMs = 200;
  const outcome = transfer({ mode: "coded", bytes: 1_500_000, links, seed: 32 });
  const sentBefore = (4 * 896_000 * 160) / 1000;
  const shareMs = ((1_500_000 * 1.0145 - sentBefore) / (3 * 896_000)) * 1000;
  expect(outcome.decidedMs!).toBeLessThan(200 + shareMs + 80);
});

test("transfer: a lost session can come back in the middle", () => {
  const receiver = new Receiver({ requestId: 1, url: "http://o/", mode: "coded-mutp", proxyCount: 2, codec, nowMs: 0 });
  receiver.handleProxyReady(0, 0);
  receiver.handleProxyReady(1, 0);
  while (receiver.pollTransmit(0)) continue;
  receiver.handleProxyLost(0, "closed", 10);
  expect(receiver.stats().proxies[0]!.state).toBe("failed");
  receiver.handleProxyReady(0, 20);
  expect(receiver.stats().proxies[0]!.state).toBe("waiting");
  expect(receiver.pollTransmit(20)).toMatchObject({ proxyIndex: 0 });
});

test("transfer: coded, the grants to a proxy are no more frequent when another one is lost", () => {
  const receiver = new Receiver({ requestId: 1, url: "http://o/", mode: "coded", proxyCount: 2, codec, nowMs: 0 });
  const head = { status: 200, totalBytes: 100_000, headers: {}, serverFetchMs: 0 };
  const grantsUntil = (fromMs: number, toMs: number): number => {
    let grants = 0;
    for (let nowMs = fromMs; nowMs < toMs; nowMs += 0.25) while (receiver.pollTransmit(nowMs)) grants++;
    return grants;
  };
  for (const index of [0, 1]) receiver.handleProxyReady(index, 0);
  grantsUntil(0, 1);
  for (const index of [0, 1]) receiver.handleFrame(index, encodeFrame({ type: "plan", requestId: 1, head }), 40);
  const toBoth = grantsUntil(40, 240);
  receiver.handleProxyLost(1, "closed", 240);
  expect(grantsUntil(240, 440)).toBeLessThanOrEqual(toBoth / 2 + 1);
  expect(toBoth).toBeGreaterThan(2 * 10);
});

test("transfer: a request over a limit is refused before it is sent, with the value and the limit", () => {
  const make = (symbolBytes: number) =>
    new Receiver({ requestId: 1, url: "http://o/", mode: "coded-mutp", proxyCount: 1, codec, nowMs: 0, symbolBytes });
  expect(() => make(LIMITS.symbolBytesMax)).not.toThrow();
  expect(() => make(LIMITS.symbolBytesMax + 1)).toThrow(/got 1141, limit 1140/);
});
