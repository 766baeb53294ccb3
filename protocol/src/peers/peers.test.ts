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

/** The vector of source block `index`. */
function unit(index: number): Uint8Array {
  const vector = new Uint8Array(10);
  vector[index] = 1;
  return vector;
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

test("coding: a neighbour may promise four blocks, which come from another when it is gone", () => {
  const [peer, source] = [makers[0]![1]({ upstream: [0, 3] }), makers[0]![1](sourceOptions)];
  for (let index = 0; index < 10; index++) peer.handleControl(3, { kind: "offer", vector: unit(index) });
  expect(controlFor(peer, 3).map(({ kind }) => kind)).toEqual([
    ...Array<string>(4).fill("accept"),
    ...Array<string>(6).fill("refuse"),
  ]);
  source.start();
  serve(source, peer);
  expect(peer.isComplete).toBe(false);
  peer.handleGone(3);
  serve(source, peer);
  expect(peer.content()).toEqual(CONTENT);
  [peer, source].forEach((each) => each.free());
});

test("coding: a neighbour whose offer came while it had promised four is asked when one of them has come", () => {
  const peer = makers[0]![1]();
  for (let index = 0; index < 5; index++) peer.handleControl(0, { kind: "offer", vector: unit(index) });
  controlFor(peer, 0);
  peer.handleBlock(0, { vector: unit(0), payload: CONTENT.subarray(0, 4), codedBytes: 0 });
  expect(controlFor(peer, 0)).toEqual([{ kind: "ask" }]);
  peer.free();
});

test("coding: idle neighbours are asked when one is gone whose promise did not count any more", () => {
  const peer = makers[0]![1]({ upstream: [0, 3] });
  for (let index = 0; index < 9; index++) {
    peer.handleControl(0, { kind: "offer", vector: unit(index) });
    peer.handleBlock(0, { vector: unit(index), payload: CONTENT.subarray(index * 4, index * 4 + 4), codedBytes: 0 });
  }
  peer.handleControl(0, { kind: "offer", vector: unit(0) });
  controlFor(peer, 0);
  peer.handleControl(3, { kind: "offer", vector: unit(9) });
  peer.handleControl(0, { kind: "offer", vector: unit(0) });
  controlFor(peer, 0);
  peer.handleGone(3);
  expect(controlFor(peer, 0)).toEqual([{ kind: "ask" }]);
  peer.free();
});

test("rarest first: what a neighbour was asked for is asked of another when it is gone", () => {
  const peer = makers[1]![1]({ upstream: [0, 3] });
  for (const index of [0, 1]) peer.handleControl(3, { kind: "have", index });
  expect(controlFor(peer, 3).map(({ kind }) => kind)).toEqual(["request", "request"]);
  for (const index of [0, 1]) peer.handleControl(0, { kind: "have", index });
  peer.handleGone(3);
  const asked = controlFor(peer, 0).filter(({ kind }) => kind === "request");
  expect(asked.map((control) => "index" in control && control.index).sort()).toEqual([0, 1]);
  expect(controlFor(peer, 3)).toEqual([]);
});
