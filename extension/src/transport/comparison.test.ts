import { COMPARED_BYTES_MAX } from "../shared/messages";
import { compare, SiteBody, type Verdict } from "./comparison";

const PAGE = "https://page.example";
const TARGET = new URL("https://m.example/1.ts");
const OPEN = { "content-type": "video/mp2t", "access-control-allow-origin": "*" };

interface Given {
  site?: number[] | Uint8Array;
  isWhole?: boolean;
  siteHeaders?: Record<string, string>;
  brought?: number[] | Uint8Array;
  headers?: Record<string, string>;
  totalBytes?: number | null;
  answered?: string;
}

function verdict(given: Given): Promise<Verdict> {
  const { site = [1, 2, 3], brought = [1, 2, 3], headers = OPEN, answered = TARGET.href } = given;
  const body = new SiteBody();
  for (const part of [site.slice(0, 2), site.slice(2)]) body.push(Uint8Array.from(part));
  body.end(given.isWhole ?? true);
  const stream = new ReadableStream<Uint8Array>({
    start(controller) {
      controller.enqueue(Uint8Array.from(brought.slice(0, 1)));
      if (brought.length > 1) controller.enqueue(Uint8Array.from(brought.slice(1)));
      controller.close();
    },
  });
  return compare(
    { head: { status: 200, url: TARGET.href, headers: { "content-type": "video/mp2t", ...given.siteHeaders } }, body },
    { head: { status: 200, headers, totalBytes: given.totalBytes ?? null }, body: stream },
    { hops: [], answered: new URL(answered) },
    TARGET,
    PAGE,
  );
}

describe("comparison: the whole answer counts", () => {
  test("equal answers", async () => expect(await verdict({})).toMatchObject({ kind: "same" }));
  test("empty answers", async () => expect(await verdict({ site: [], brought: [] })).toMatchObject({ kind: "same" }));

  test.each<[string, Given]>([
    ["a byte", { brought: [1, 2, 4] }],
    ["a missing byte", { brought: [1, 2] }],
    ["a byte too many", { brought: [1, 2, 3, 4] }],
    ["the type", { siteHeaders: { "content-type": "video/mp4" } }],
    ["the language", { siteHeaders: { "content-language": "de" } }],
    ["the length that the site told", { siteHeaders: { "content-length": "3" }, totalBytes: 4 }],
    ["the target of a redirect", { answered: "https://login.example/1.ts" }],
  ])("%s differs", async (_name, given) => expect(await verdict(given)).toMatchObject({ kind: "differs" }));

  test("validators may differ if the bytes do not: each server behind a name has its own", async () => {
    const given = { headers: { ...OPEN, etag: '"a"', "last-modified": "x" }, siteHeaders: { "last-modified": "y" } };
    expect(await verdict(given)).toMatchObject({ kind: "same" });
  });

  test("of a range the length of the whole file may differ, because files grow; its place may not", async () => {
    const of = (place: string): Record<string, string> => ({ "content-range": `bytes ${place}` });
    const exposed = { ...OPEN, "access-control-expose-headers": "Content-Range" };
    const given = { headers: { ...exposed, ...of("0-2/10") } };
    for (const place of ["0-2/20", "0-2/*"])
      expect(await verdict({ ...given, siteHeaders: of(place) })).toMatchObject({ kind: "same" });
    expect(await verdict({ ...given, siteHeaders: of("1-3/10") })).toMatchObject({ kind: "differs" });
  });

  test("a body that broke off tells nothing", async () =>
    expect(await verdict({ site: [1, 2], isWhole: false })).toEqual({ kind: "none" }));

  test("an answer that the page may not read is not compared", async () =>
    expect(await verdict({ headers: {} })).toMatchObject({ kind: "cors" }));

  test("of a long body the first part is compared, and then the validators must be equal", async () => {
    const site = new Uint8Array(COMPARED_BYTES_MAX);
    const brought = new Uint8Array(COMPARED_BYTES_MAX + 10);
    expect(await verdict({ site, brought })).toMatchObject({ kind: "same" });
    expect(await verdict({ site, brought, siteHeaders: { "last-modified": "x" } })).toMatchObject({ kind: "differs" });
    brought[COMPARED_BYTES_MAX - 1] = 1;
    expect(await verdict({ site, brought })).toMatchObject({ kind: "differs" });
  });
});

test("comparison: a page cannot make the transport keep more than the compared part", () => {
  const body = new SiteBody();
  expect([body.push(new Uint8Array(COMPARED_BYTES_MAX)), body.push(new Uint8Array(1))]).toEqual([true, false]);
});
