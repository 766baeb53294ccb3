import { PIECE_BYTES } from "@tributary/contract/tree";
import { geometryOf, type Geometry } from "../geometry";
import { DIGEST_EVERY_PACKETS, LIMITS, TIMING } from "../limits";
import { digestAnnouncer, proofAnnouncer } from "./announcer";

const GENERATION_BYTES = 640;

function make(generationCount: number) {
  const totalBytes = generationCount * GENERATION_BYTES;
  const source = {
    totalBytes,
    availableBytes: totalBytes,
    view: () => new Uint8Array(0),
    digest: (start: number) => new Uint8Array(LIMITS.digestBytes).fill(start / GENERATION_BYTES),
  };
  const geometry = geometryOf(totalBytes, 64, 10) as Geometry;
  return { source, announcer: digestAnnouncer(1, geometry, source) };
}

describe("sender: digests", () => {
  test("leave as soon as a generation is there, and then once in some data frames", () => {
    const { source, announcer } = make(3);
    source.availableBytes = GENERATION_BYTES - 1;
    expect(announcer.poll(true, 0)).toBeUndefined();
    source.availableBytes = GENERATION_BYTES;
    expect(announcer.poll(true, 0)).toMatchObject({ firstGeneration: 0, digests: [{ 0: 0 }] });
    source.availableBytes = source.totalBytes;
    for (let sent = 1; sent < DIGEST_EVERY_PACKETS; sent++) announcer.handleDataSent();
    expect(announcer.poll(true, 0)).toBeUndefined();
    announcer.handleDataSent();
    expect(announcer.poll(true, 0)).toMatchObject({ firstGeneration: 1, digests: [{ 0: 1 }, { 0: 2 }] });
  });

  test("leave at once when there is no data to send, and are repeated until the client has them", () => {
    const { announcer } = make(2);
    expect(announcer.poll(false, 0)).toMatchObject({ firstGeneration: 0, digests: { length: 2 } });
    expect(announcer.poll(false, 0)).toBeUndefined();
    expect(announcer.pollTimeout()).toBe(TIMING.digestRepeatMs);
    announcer.handleTimeout(TIMING.digestRepeatMs);
    expect(announcer.poll(false, 30)).toMatchObject({ firstGeneration: 0 });
    announcer.handleHeard(1);
    announcer.handleTimeout(announcer.pollTimeout()!);
    expect(announcer.poll(false, 90)).toMatchObject({ firstGeneration: 1, digests: { length: 1 } });
    announcer.handleHeard(2);
    expect(announcer.pollTimeout()).toBeUndefined();
  });

  test("are bounded by what the client has confirmed, and a false confirmation changes nothing", () => {
    const { announcer } = make(LIMITS.digestsAheadMax + 10);
    let count = 0;
    for (let frame = announcer.poll(false, 0); frame; frame = announcer.poll(false, 0)) {
      expect(frame.digests.length).toBeLessThanOrEqual(LIMITS.digestsPerFrameMax);
      count += frame.digests.length;
    }
    expect(count).toBe(LIMITS.digestsAheadMax);
    announcer.handleHeard(LIMITS.digestsAheadMax + 11);
    expect(announcer.poll(false, 0)).toBeUndefined();
    announcer.handleHeard(5);
    expect(announcer.poll(false, 0)).toMatchObject({ digests: { length: 5 } });
  });

  test("begin anew for a client that has forgotten the plan", () => {
    const { announcer } = make(2);
    announcer.poll(false, 0);
    announcer.handleHeard(2);
    announcer.handleAskedAgain();
    expect(announcer.poll(false, 10)).toMatchObject({ firstGeneration: 0, digests: { length: 2 } });
  });
});

describe("sender: proofs", () => {
  const totalBytes = 5 * PIECE_BYTES;
  const source = {
    totalBytes,
    availableBytes: totalBytes,
    view: () => new Uint8Array(0),
    proof: (piece: number) => new Uint8Array(60 * 32).fill(piece),
  };
  const request = { requestId: 1, range: { start: 3 * PIECE_BYTES, end: 8 * PIECE_BYTES - 1 } };

  test("of the first piece leave before data, and the others between data frames", () => {
    const announcer = proofAnnouncer(request, source);
    const first = Array.from({ length: 4 }, () => announcer.poll(true, 0)?.firstDigest);
    expect(first).toEqual([0, 34, undefined, undefined]);
    for (let sent = 0; sent < DIGEST_EVERY_PACKETS; sent++) announcer.handleDataSent();
    const next = announcer.poll(true, 0)!;
    expect(next).toMatchObject({ firstDigest: 68, digests: { length: 34 * 32 } });
    expect(next.digests[0]).toBe(4);
  });

  test("go on after what the client has from others, and wait until it confirms", () => {
    const announcer = proofAnnouncer(request, source);
    announcer.handleHeard(67);
    let count = 67;
    for (let frame = announcer.poll(false, 0); frame; frame = announcer.poll(false, 0)) {
      expect(frame.firstDigest).toBe(count);
      count += frame.digests.length / 32;
    }
    expect(count).toBe(300);
    announcer.handleHeard(300);
    expect(announcer.pollTimeout()).toBeUndefined();
  });
});
