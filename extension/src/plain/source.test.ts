import type { Carrier, CarriedRequestEvents } from "../shared/carry";
import type { Link } from "../page/link";
import type { Natives } from "../page/natives";
import { Unsupported } from "./mp4";
import { Source, type Reading } from "./source";

const HEAD = {
  status: 206,
  statusText: "Partial Content",
  headers: {},
  responseType: "cors",
  url: "https://o.test/a.mp4",
  redirected: false,
  totalBytes: null,
} as const;

/** Reads `range` and answers with `pieces`. */
async function read(
  range: { start: number; end: number },
  pieces: number[][],
): Promise<{ bytes: Reading["bytes"]; seen: { credits: number; aborts: number } }> {
  const seen = { credits: 0, aborts: 0 };
  let events: CarriedRequestEvents | undefined;
  const carry = (_request: unknown, given: CarriedRequestEvents): ReturnType<Carrier["carry"]> => {
    events = given;
    return { credit: () => void seen.credits++, abort: () => void seen.aborts++, useSite: () => undefined };
  };
  const link = { carrier: { carry } } as unknown as Link;
  const { bytes } = new Source(HEAD.url, link, {} as Natives).read(range);
  bytes.catch(() => undefined);
  await new Promise((resolve) => setTimeout(resolve, 5));
  events?.head({ ...HEAD });
  for (const piece of pieces) events?.bytes(Uint8Array.from(piece));
  events?.end();
  return { bytes, seen };
}

test("source: joins pieces into one array, also if the file ends before the range", async () => {
  const { bytes, seen } = await read({ start: 0, end: 9 }, [[1, 2, 3], [4], [5, 6]]);
  expect([[...(await bytes)], seen]).toEqual([[1, 2, 3, 4, 5, 6], { credits: 3, aborts: 0 }]);
});

test("source: takes exactly the asked number of bytes and refuses more", async () => {
  const full = await read({ start: 5, end: 8 }, [
    [1, 2],
    [3, 4],
  ]);
  expect([...(await full.bytes)]).toEqual([1, 2, 3, 4]);
  const more = await read({ start: 5, end: 8 }, [
    [1, 2],
    [3, 4, 5],
  ]);
  await expect(more.bytes).rejects.toBeInstanceOf(Unsupported);
  expect(more.seen.aborts).toBe(1);
});
