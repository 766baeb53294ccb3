/** What proxies take over of an answer of the origin, and how. */
import { carriableOf } from "./route";
import { handOver } from "./serve";

const KIB = 1024;

async function* body(...pieces: string[]): AsyncGenerator<Uint8Array> {
  for (const piece of pieces) yield await Promise.resolve(Buffer.from(piece));
}

async function textOf(pieces: AsyncIterable<Uint8Array>): Promise<string> {
  const all: Uint8Array[] = [];
  for await (const piece of pieces) all.push(piece);
  return Buffer.concat(all).toString();
}

describe("hand-over", () => {
  test.each([
    [0, "NEW"],
    [1, "0NEW"],
    [4, "0123NEW"],
    [5, "01234NEW"],
    [9, "012345678NEW"],
    [10, "012345678"],
  ])("after %i bytes of the origin", async (leadBytes, expected) => {
    const own = body("0123", "4567", "8");
    expect(await textOf(handOver(own, leadBytes, () => Promise.resolve(body("NEW"))))).toBe(expected);
  });

  test.each([0, 2, 4, 6, 9])("the origin goes on if nothing takes over after %i bytes", async (leadBytes) => {
    let asked = 0;
    const taking = handOver(body("0123", "4567", "8"), leadBytes, () => Promise.resolve(void asked++));
    expect(await textOf(taking)).toBe("012345678");
    expect(asked).toBe(1);
  });

  test("the origin's body ends before the first byte of the other", async () => {
    const events: string[] = [];
    const own = (async function* () {
      try {
        yield* body("0", "1", "2");
      } finally {
        events.push("closed");
      }
    })();
    const rest = (async function* () {
      events.push("taken");
      yield* body("x");
    })();
    expect(await textOf(handOver(own, 2, () => Promise.resolve(rest)))).toBe("01x");
    expect(events).toEqual(["closed", "taken"]);
  });
});

describe("what proxies can bring of an answer", () => {
  const bytes = 600 * KIB;
  const media = { "content-type": "video/mp4", "content-length": String(bytes), "accept-ranges": "bytes", etag: '"1"' };
  const of = (change: Record<string, string | undefined>, status = 200) => {
    const headers = Object.entries({ ...media, ...change }).filter(([, value]) => value !== undefined);
    return carriableOf(status, new Headers(headers as [string, string][]));
  };
  const part = { "content-range": `bytes 1000-${1000 + bytes - 1}/9000000`, "accept-ranges": undefined };

  test.each<[string, Record<string, string | undefined>, number, ReturnType<typeof of>]>([
    [
      "the whole",
      {},
      200,
      {
        asked: { start: 256 * KIB, end: bytes - 1 },
        leadBytes: 256 * KIB,
        file: { resourceBytes: bytes, etag: '"1"' },
      },
    ],
    [
      "a part",
      part,
      206,
      {
        asked: { start: 1000 + 256 * KIB, end: 1000 + bytes - 1 },
        leadBytes: 256 * KIB,
        file: { resourceBytes: 9_000_000, etag: '"1"' },
      },
    ],
    [
      "nothing tells versions apart, so the whole comes from one side",
      { etag: 'W/"1"' },
      200,
      { asked: undefined, leadBytes: 0, file: { resourceBytes: bytes, etag: 'W/"1"' } },
    ],
    [
      "the site has no ranges",
      { "accept-ranges": "none" },
      200,
      { asked: undefined, leadBytes: 0, file: { resourceBytes: bytes, etag: '"1"' } },
    ],
    [
      "a part that nothing tells apart",
      { ...part, etag: undefined },
      206,
      {
        asked: { start: 1000, end: 1000 + bytes - 1 },
        leadBytes: 0,
        file: { resourceBytes: 9_000_000, etag: undefined },
      },
    ],
    ["too small", { "content-length": String(512 * KIB - 1) }, 200, undefined],
    ["of unknown length", { "content-length": undefined }, 200, undefined],
    ["a part of a file of unknown length", { ...part, "content-range": "bytes 0-9/*" }, 206, undefined],
    ["a page", { "content-type": "text/html" }, 200, undefined],
    ["an error", {}, 500, undefined],
    ["with a cookie", { "set-cookie": "a=1" }, 200, undefined],
    ["private", { "cache-control": "private" }, 200, undefined],
  ])("%s", (_name, change, status, expected) => expect(of(change, status)).toEqual(expected));
});
