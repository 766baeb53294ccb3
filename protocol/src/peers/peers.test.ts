/** Peers against neighbours that break the rules: bounded work, and no wrong byte. */
import { loadWasmCodec } from "@tributary/wasm-codec/node";
import { xorshift128 } from "../rng";
import { CodingPeer, RarestPeer, NaivePeer, type Control, type Peer, type PeerOptions } from "./index";

const codec = loadWasmCodec();
const CONTENT = Uint8Array.from({ length: 40 }, (_, index) => index * 37);
const common: PeerOptions = { blockCount: 10, blockBytes: 4, upstream: [0], downstream: [2], rng: xorshift128(1) };

const makers: [string, (changed?: Partial<PeerOptions>) => Peer][] = [
  [
    "coding",
    (changed) => new CodingPeer({ ...common, ...changed, codec, density: 1, aggressiveness: 0.1, check: "ahead" }),
  ],
  ["rarest first", (changed) => new RarestPeer({ ...common, ...changed })],
  ["naive broadcast", (changed) => new NaivePeer({ ...common, ...changed })],
];

/** All control messages that the peer has for a neighbour. */
function controlFor(peer: Peer, neighbour: number): Control[] {
  const all = [];
  for (let next = peer.pollControl(); next; next = peer.pollControl())
    if (next.to === neighbour) all.push(next.control);
  return all;
}

/** Lets peer 0, which has all, serve peer 1 until nothing moves. Returns how many blocks went. */
function serve(source: Peer, peer: Peer): number {
  let blocks = 0;
  for (let isMoving = true; isMoving && blocks < 100;) {
    const [down, up] = [controlFor(source, 1), controlFor(peer, 0)];
    for (const control of down) peer.handleControl(0, control);
    for (const control of up) source.handleControl(1, control);
    const block = source.nextBlock(1);
    if (block) {
      blocks++;
      peer.handleBlock(0, block);
    }
    isMoving = block !== undefined || down.length + up.length > 0;
  }
  return blocks;
}

const sourceOptions = { upstream: [], downstream: [1], source: CONTENT };

describe.each(makers)("%s", (_name, make) => {
  let peer: Peer;
  let source: Peer;
  beforeEach(() => {
    [peer, source] = [make(), make(sourceOptions)];
    source.start();
    peer.start();
  });
  afterEach(() => [peer, source].forEach((each) => each.free()));

  test("gets the content from one that has it, with as many blocks as there are", () => {
    expect(serve(source, peer)).toBe(10);
    expect(peer.isComplete).toBe(true);
    expect(peer.content()).toEqual(CONTENT);
    expect(peer.counts).toEqual({ received: 10, innovative: 10 });
    expect(source.nextBlock(1)).toBeUndefined();
  });

  test("takes nothing that it cannot use, however often it comes", () => {
    const payload = new Uint8Array(4);
    for (let times = 0; times < 1000; times++) {
      peer.handleBlock(0, { vector: new Uint8Array(10), payload, codedBytes: 0 });
      peer.handleBlock(0, { vector: new Uint8Array(11).fill(1), payload, codedBytes: 0 });
      peer.handleBlock(0, { index: 10, payload, codedBytes: 0 });
      peer.handleControl(0, { kind: "offer", vector: new Uint8Array(10) });
      peer.handleControl(0, { kind: "offer", vector: new Uint8Array(9) });
      for (const kind of ["accept", "refuse", "ask", "done"] as const) peer.handleControl(99, { kind });
      for (const kind of ["have", "request", "cancel"] as const) peer.handleControl(99, { kind, index: 10 ** 6 });
    }
    expect(peer.counts.innovative).toBe(0);
    expect([peer.nextBlock(2), peer.nextBlock(99)]).toEqual([undefined, undefined]);
    controlFor(peer, 0);
    serve(source, peer);
    expect(peer.content()).toEqual(CONTENT);
  });
});
