import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { Peers } from "./peers";

let server: Server;
let url: string;
const asked: string[] = [];

beforeAll(async () => {
  server = createServer((request, response) => {
    const { searchParams } = new URL(request.url!, "http://peer");
    asked.push(`${searchParams.get("part")} ${searchParams.get("version")} ${request.headers.range ?? ""}`);
    if (searchParams.get("url") === "http://o/silent") return;
    response.write(Buffer.alloc(6, 1));
    if (searchParams.get("url") === "http://o/much") response.end(Buffer.alloc(1000, 2));
    else if (searchParams.get("url") === "http://o/short") response.end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

afterAll(() => {
  server.closeAllConnections();
  server.close();
});

async function bytesOf(peers: Peers, id: string, path: string): Promise<number> {
  let count = 0;
  const span = { start: 100, end: 110 };
  const request = { url: `http://o/${path}` };
  const range = { start: 5, end: 500 };
  for await (const bytes of peers.held(id, { request, token: "t", range, span, version: '"1"' })) count += bytes.length;
  return count;
}

test("peers: a proxy that Origo does not name is never asked", async () => {
  const peers = new Peers(() => Promise.resolve({ known: url }));
  expect(await bytesOf(peers, "known", "much")).toBe(0);
  await peers.learn(["known", "stranger", "__proto__"]);
  expect(await bytesOf(peers, "stranger", "much")).toBe(0);
  expect(await bytesOf(peers, "__proto__", "much")).toBe(0);
  expect([asked, peers.counts.refused]).toEqual([[], 3]);
});

test.each([
  ["much", 10],
  ["short", 6],
  ["stalls", 6],
  ["silent", 0],
])("peers: of a peer that answers as %s, %i of ten bytes are taken", async (path, count) => {
  const peers = new Peers(() => Promise.resolve({ known: url }));
  await peers.learn(["known"]);
  expect(await bytesOf(peers, "known", path)).toBe(count);
  expect(asked.at(-1)).toBe('100-109 "1" bytes=5-500');
});

test("peers: Origo is asked once for what it said, and not more often than each second", async () => {
  let nowMs = 0;
  const questions: (readonly string[])[] = [];
  const ask = (ids: readonly string[]) => {
    questions.push(ids);
    return Promise.resolve({});
  };
  const peers = new Peers(ask, () => nowMs);
  for (const [atMs, id] of [
    [0, "a"],
    [10, "b"],
    [1000, "b"],
    [2000, "a"],
    [31_000, "a"],
  ] as const) {
    nowMs = atMs;
    await peers.learn([id]);
  }
  expect(questions).toEqual([["a"], ["b"], ["a"]]);
});
