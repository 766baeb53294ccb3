/** Swarm nodes over real sockets: all get the right bytes, and neighbours that break the rules cannot stop them. */
import net from "node:net";
import { PEER_SCHEMES, xorshift128, type PeerScheme } from "@tributary/protocol";
import { loadWasmCodec } from "@tributary/wasm-codec/node";
import { SwarmNode, type SwarmNodeOptions } from "./node";
import { encodeSwarmFrame, PIECE_BYTES, type SwarmFrame } from "./wire";

const codec = loadWasmCodec();
const BLOCKS = 10;
const BLOCK_BYTES = 9000;
const CONTENT = Uint8Array.from({ length: BLOCKS * BLOCK_BYTES }, (_, index) => (index * 37 + (index >> 9)) & 0xff);
const TOKEN = new Uint8Array(16).fill(5);

let nodes: SwarmNode[];
let servers: net.Server[];
let sockets: net.Socket[];
beforeEach(() => ([nodes, servers, sockets] = [[], [], []]));
afterEach(() => {
  for (const node of nodes) node.close();
  for (const socket of sockets) socket.destroy();
  for (const server of servers) server.close();
});

interface Made {
  node: SwarmNode;
  port: number;
  content: Promise<Uint8Array>;
  isolated: Promise<void>;
}

async function make(id: number, changed: Partial<SwarmNodeOptions> = {}, at = 0): Promise<Made> {
  let [noteContent, noteIsolated]: [(content: Uint8Array) => void, () => void] = [() => undefined, () => undefined];
  const content = new Promise<Uint8Array>((resolve) => (noteContent = resolve));
  const isolated = new Promise<void>((resolve) => (noteIsolated = resolve));
  const node = new SwarmNode({
    id,
    token: TOKEN,
    scheme: "coding",
    codec,
    blockCount: BLOCKS,
    blockBytes: BLOCK_BYTES,
    density: 1,
    aggressiveness: 0.1,
    check: "ahead",
    upstream: [],
    downstream: [],
    rng: xorshift128(id + 1),
    source: id === 0 ? CONTENT : undefined,
    upBytesPerSec: 5e6,
    downBytesPerSec: 5e6,
    onComplete: noteContent,
    onIsolated: noteIsolated,
    ...changed,
  });
  nodes.push(node);
  return { node, port: await node.listen(at), content, isolated };
}

/** One that node 1 takes for its upstream neighbour 9. */
function hostile(speak: (send: (...frames: SwarmFrame[]) => void, socket: net.Socket) => void): Promise<number> {
  const server = net.createServer((socket) => {
    sockets.push(socket);
    socket.on("error", () => undefined);
    socket.resume();
    speak((...frames) => frames.every((frame) => socket.write(encodeSwarmFrame(frame))), socket);
  });
  servers.push(server);
  return new Promise((resolve) =>
    server.listen(0, "127.0.0.1", () => resolve((server.address() as net.AddressInfo).port)),
  );
}

/** The first node and a hostile one serve node 1. Resolves when node 1 has all. */
async function besideHostile(
  speak: Parameters<typeof hostile>[0],
  changed: Partial<SwarmNodeOptions> = {},
): Promise<Made> {
  const { scheme = "coding" } = changed;
  const source = await make(0, { downstream: [1], scheme, ...(changed.check ? { check: changed.check } : {}) });
  const peer = await make(1, { upstream: [0, 9], ...changed });
  const port = await hostile(speak);
  const joined = source.node.join(() => 0);
  await peer.node.join((id) => (id === 9 ? port : source.port));
  await joined;
  peer.node.start();
  source.node.start();
  expect(Buffer.compare(await peer.content, CONTENT)).toBe(0);
  return peer;
}

test.each(PEER_SCHEMES)(
  "%s: a chain of three gets the bytes, also when a fourth one goes away",
  async (scheme: PeerScheme) => {
    const first = await make(0, { scheme, downstream: [1, 3] });
    const second = await make(1, { scheme, upstream: [0, 3], downstream: [2] });
    const third = await make(2, { scheme, upstream: [1] });
    const goes = await make(3, { scheme, upstream: [0], downstream: [1] });
    const all = [first, second, third, goes];
    await Promise.all(all.map(({ node }) => node.join((id) => all[id]!.port)));
    for (const { node } of [second, third, goes, first]) node.start();
    goes.node.close();
    for (const { content } of [second, third]) expect(Buffer.compare(await content, CONTENT)).toBe(0);
    nodes.splice(nodes.indexOf(goes.node), 1);
  },
);

const zeros = new Uint8Array(BLOCKS);
const piece = (length: number): SwarmFrame => ({ kind: "piece", payload: new Uint8Array(length) });
const zeroBlock: SwarmFrame[] = [
  { kind: "codedBlock", vector: zeros },
  piece(PIECE_BYTES),
  piece(BLOCK_BYTES - PIECE_BYTES),
];

test.each<[string, string, SwarmFrame[]]>([
  ["a vector longer than the generation", "length", [{ kind: "offer", vector: new Uint8Array(BLOCKS + 1) }]],
  ["a piece without a block", "blockBytes", [piece(10)]],
  ["more than the block has", "blockBytes", [...zeroBlock, piece(1)]],
  ["more than the window", "window", [...zeroBlock, ...zeroBlock, ...zeroBlock, ...zeroBlock, ...zeroBlock]],
  ["what only one that is served says", "kind", [{ kind: "credit", bytes: 1 }]],
  ["a thousand offers of nothing", "flood", Array<SwarmFrame>(1000).fill({ kind: "offer", vector: zeros })],
  ["blocks that are begun and not sent", "flood", Array<SwarmFrame>(1000).fill(zeroBlock[0]!)],
])("a neighbour that sends %s is counted as %s and dropped", async (_what, fault, frames) => {
  const peer = await besideHostile((send) => send(...frames), { upBytesPerSec: 1e6, downBytesPerSec: 1e5 });
  expect(peer.node.faults).toEqual({ [fault]: 1 });
});

test("a neighbour that sends blocks of zeros without end is dropped after a bounded number", async () => {
  const peer = await besideHostile(
    (send, socket) => {
      send(...zeroBlock);
      let creditBytes = 0;
      socket.on("data", (bytes) => {
        // Frames of credit have 7 bytes, and the hello comes first.
        for (creditBytes += bytes.length; creditBytes >= 14; creditBytes -= 14) send(...zeroBlock);
      });
    },
    { check: "arrival", aggressiveness: 1, downBytesPerSec: 1e8 },
  );
  expect(peer.node.blocks.received).toBeLessThan(BLOCKS + 32 * BLOCKS + 256 + 2);
});

test("one that promises all and sends nothing is dropped as silent, and another brings the blocks", async () => {
  const promises = Array.from({ length: BLOCKS }, (_, index): SwarmFrame => {
    const vector = new Uint8Array(BLOCKS);
    vector[index] = 1;
    return { kind: "offer", vector };
  });
  const peer = await besideHostile((send) => send(...promises), { silenceMs: 300 });
  expect(peer.node.blocks.innovative).toBe(BLOCKS);
});

test("one that was not told the token, or that breaks rules where it is served, is dropped", async () => {
  const { node, port } = await make(0, { downstream: [1, 2] });
  node.start();
  const attempt = (...frames: SwarmFrame[]): Promise<void> =>
    new Promise((resolve) => {
      const socket = net.connect(port, "127.0.0.1", () =>
        frames.forEach((frame) => socket.write(encodeSwarmFrame(frame))),
      );
      sockets.push(socket);
      socket.on("error", () => undefined);
      socket.on("close", () => resolve());
      socket.resume();
    });
  await attempt({ kind: "hello", token: new Uint8Array(16), id: 1 });
  await attempt({ kind: "hello", token: TOKEN, id: 7 });
  await attempt({ kind: "hello", token: TOKEN, id: 1 }, { kind: "credit", bytes: 1 });
  await attempt({ kind: "hello", token: TOKEN, id: 2 }, ...Array<SwarmFrame>(1000).fill({ kind: "ask" }));
  expect(node.faults).toEqual({ hello: 2, credit: 1, flood: 1 });
});

test("a node whose upstream neighbours are all gone says so", async () => {
  const port = await hostile((_, socket) => socket.destroy());
  const peer = await make(1, { upstream: [9] });
  await peer.node.join(() => port);
  await peer.isolated;
});

test("a port that is in use is an error that names it", async () => {
  const { port } = await make(0);
  await expect(make(1, {}, port)).rejects.toThrow(`EADDRINUSE: address already in use 127.0.0.1:${port}`);
});
