/** Frames of the swarm: what goes in comes out, in any pieces, and what breaks a rule is a fault with its limit. */
import { encodeSwarmFrame, FrameReader, PIECE_BYTES, type Role, type SwarmFrame } from "./wire";

const BLOCKS = 10;
const vector = Uint8Array.from({ length: BLOCKS }, (_, index) => index);
const token = Uint8Array.from({ length: 16 }, (_, index) => 255 - index);

const FRAMES: [Role, SwarmFrame][] = [
  ["stranger", { kind: "hello", token, id: 300 }],
  ["upstream", { kind: "have", index: 9 }],
  ["upstream", { kind: "offer", vector }],
  ["upstream", { kind: "sourceBlock", index: 0 }],
  ["upstream", { kind: "codedBlock", vector }],
  ["upstream", { kind: "piece", payload: Uint8Array.of(1) }],
  ["upstream", { kind: "piece", payload: new Uint8Array(PIECE_BYTES).fill(7) }],
  ["downstream", { kind: "request", index: 3 }],
  ["downstream", { kind: "cancel", index: 3 }],
  ["downstream", { kind: "credit", bytes: 4_000_000_000 }],
  ...(["accept", "refuse", "ask", "done"] as const).map((kind): [Role, SwarmFrame] => ["downstream", { kind }]),
];

const again = (frame: ReturnType<FrameReader["next"]>): Uint8Array | undefined =>
  frame && new Uint8Array(encodeSwarmFrame(frame as SwarmFrame));

test.each(FRAMES)("%s: %j is read as it was written, also byte by byte", (role, frame) => {
  const bytes = new Uint8Array(encodeSwarmFrame(frame));
  const whole = new FrameReader(role, BLOCKS);
  whole.push(Buffer.concat([bytes, bytes]));
  expect([whole.next(), whole.next(), whole.next()].map(again)).toEqual([bytes, bytes, undefined]);
  const slow = new FrameReader(role, BLOCKS);
  for (const [index, byte] of bytes.entries()) {
    expect(slow.next()).toBeUndefined();
    slow.push(Uint8Array.of(byte));
    if (index === bytes.length - 1) expect(again(slow.next())).toEqual(bytes);
  }
});

const raw = (code: number, length: number, ...body: number[]): Uint8Array =>
  Uint8Array.of(code, length >> 8, length & 0xff, ...body);
const codeOf = (frame: SwarmFrame): number => encodeSwarmFrame(frame)[0]!;
const OFFER = codeOf({ kind: "offer", vector });
const PIECE = codeOf({ kind: "piece", payload: token });

test.each<[string, Role, Uint8Array, object]>([
  ["an unknown kind", "upstream", raw(0, 0), { fault: "kind", got: 0, limit: 13 }],
  ["a kind above the last", "upstream", raw(200, 0), { fault: "kind", got: 200, limit: 13 }],
  ["a stranger that does not say hello", "stranger", raw(OFFER, BLOCKS), { fault: "kind", got: OFFER, limit: 13 }],
  ["an offer by one that we serve", "downstream", raw(OFFER, BLOCKS), { fault: "kind", got: OFFER, limit: 13 }],
  ["a vector longer than the generation", "upstream", raw(OFFER, BLOCKS + 1), { fault: "length", got: 11, limit: 10 }],
  ["a vector shorter than the generation", "upstream", raw(OFFER, BLOCKS - 1), { fault: "length", got: 9, limit: 10 }],
  ["an empty piece", "upstream", raw(PIECE, 0), { fault: "length", got: 0, limit: 1 }],
  ["a long piece", "upstream", raw(PIECE, PIECE_BYTES + 1), { fault: "length", got: 8193, limit: 8192 }],
  [
    "a block out of range",
    "upstream",
    encodeSwarmFrame({ kind: "have", index: 10 }),
    { fault: "index", got: 10, limit: 9 },
  ],
])("%s is a fault before its body is there", (_what, role, bytes, fault) => {
  const reader = new FrameReader(role, BLOCKS);
  reader.push(bytes);
  expect(reader.next()).toEqual(fault);
});
