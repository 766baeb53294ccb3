import type { PageResponseHead } from "../shared/messages";
import {
  CHECKED_FIRST,
  CHECKED_ONE_IN,
  Checks,
  LARGE_BYTES,
  SAMPLE_BYTES,
  SAMPLE_FRAGMENT,
  type Check,
} from "./checks";

const TOTAL = LARGE_BYTES + SAMPLE_BYTES;
const FILE = Uint8Array.from({ length: 2 * TOTAL }, (_, index) => index % 251);
const HEAD: PageResponseHead = {
  status: 200,
  statusText: "OK",
  headers: { etag: '"v1"' },
  responseType: "cors",
  url: "https://o.test/a.m4s",
  redirected: false,
  totalBytes: TOTAL,
};

interface Own {
  status?: number;
  headers?: Record<string, string>;
  bytes?: (start: number, end: number) => Uint8Array<ArrayBuffer>;
  fails?: boolean;
}

function make({
  status = 206,
  headers = { etag: '"v1"' },
  bytes = (start, end) => FILE.slice(start, end),
  fails = false,
}: Own = {}) {
  const [ranges, urls]: [string[], string[]] = [[], []];
  const nativeFetch = (async (url: string, init: RequestInit) => {
    urls.push(url);
    if (fails) throw new TypeError("refused");
    const range = new Headers(init.headers).get("range") ?? "";
    ranges.push(range);
    const [, start, end] = /^bytes=(\d+)-(\d+)$/.exec(range) ?? [];
    return new Response(bytes(Number(start), Number(end) + 1), { status, headers });
  }) as typeof fetch;
  return {
    ranges,
    urls,
    checks: new Checks({ fetch: nativeFetch, setTimeout, clearTimeout, AbortController } as never, () => 0.5),
  };
}

const ask = (
  checks: Checks,
  head: Partial<PageResponseHead> = {},
  range: { start: number; end: number } | null = null,
): Check | undefined => checks.begin({ url: HEAD.url, range }, { ...HEAD, ...head });

/** Passes `body` in pieces that cut the sample, and waits for the result. */
async function pass(check: Check, body: Uint8Array = FILE.subarray(0, TOTAL)): Promise<boolean | undefined> {
  for (let at = 0; at < body.length; at += 100) check.note(at, body.subarray(at, at + 100));
  check.end(true);
  return check.differs;
}

async function passFirst(checks: Checks): Promise<void> {
  for (let index = 0; index < CHECKED_FIRST; index++) await pass(ask(checks)!);
}

describe("checks: which chunks are checked", () => {
  test("the first four of a host are checked, then one large chunk in sixteen", async () => {
    const { checks } = make();
    const checked: number[] = [];
    for (let index = 0; index < 2 * CHECKED_ONE_IN + 1; index++) {
      const check = ask(checks);
      if (check === undefined) continue;
      checked.push(index);
      await pass(check);
    }
    expect(checked).toEqual([0, 1, 2, 3, CHECKED_ONE_IN - 1, 2 * CHECKED_ONE_IN - 1]);
    expect(checks.begin({ url: "https://other.test/a.m4s", range: null }, HEAD)).toBeDefined();
  });

  test.each<[string, Partial<PageResponseHead>]>([
    ["an empty chunk", { totalBytes: 0 }],
    ["a chunk of unknown length", { totalBytes: null }],
    ["an error answer", { status: 404 }],
  ])("%s is not checked", (_name, head) => {
    const { checks } = make();
    expect(ask(checks, head)).toBeUndefined();
    expect(ask(checks)).toBeDefined();
  });

  test("small chunks after the first four are neither checked nor counted", async () => {
    const { checks } = make();
    await passFirst(checks);
    for (let index = 0; index < 2 * CHECKED_ONE_IN; index++)
      expect(ask(checks, { totalBytes: LARGE_BYTES - 1 })).toBeUndefined();
  });

  test("the next chunk replaces a check that was given up", async () => {
    const { checks } = make();
    const [check] = Array.from({ length: CHECKED_FIRST }, () => ask(checks)!);
    expect(ask(checks)).toBeUndefined();
    check!.end(false);
    expect(await check!.differs).toBeUndefined();
    expect(ask(checks)).toBeDefined();
  });

  test("the sample lies in the body, also if the body is a part of the file", async () => {
    const { checks, ranges, urls } = make();
    const check = ask(checks, { status: 206 }, { start: 1000, end: 1000 + TOTAL - 1 })!;
    const start = 1000 + Math.floor((TOTAL - SAMPLE_BYTES + 1) / 2);
    expect(ranges).toEqual([`bytes=${start}-${start + SAMPLE_BYTES - 1}`]);
    expect(urls).toEqual([HEAD.url + SAMPLE_FRAGMENT]);
    expect(await pass(check, FILE.subarray(1000, 1000 + TOTAL))).toBe(false);
  });
});

describe("checks: results", () => {
  const changed = (): Uint8Array => FILE.slice(0, TOTAL).fill(0, TOTAL / 2, TOTAL / 2 + 2);

  test("the site's own bytes pass", async () => {
    const { checks } = make();
    const check = ask(checks)!;
    const verdict = checks.verdict(HEAD.url);
    expect([await pass(check), await verdict, checks.verdict(HEAD.url)]).toEqual([false, false, false]);
  });

  test("different bytes make the host wrong until a check passes", async () => {
    const { checks } = make();
    const check = ask(checks)!;
    const verdict = checks.verdict(HEAD.url);
    expect([await pass(check, changed()), await verdict, checks.verdict(HEAD.url)]).toEqual([true, true, true]);
    await pass(ask(checks)!);
    expect(checks.verdict(HEAD.url)).toBe(false);
  });

  test("a verdict waits for all running checks", async () => {
    const { checks } = make();
    const [good, bad] = [ask(checks)!, ask(checks)!];
    const verdict = checks.verdict(HEAD.url);
    await pass(good);
    await pass(bad, changed());
    expect([await verdict, checks.verdict(HEAD.url)]).toEqual([true, true]);
  });

  test("an unknown host is not wrong", () => expect(make().checks.verdict("https://other.test/a.m4s")).toBe(false));

  test.each<[string, Own]>([
    ["the site does not answer", { fails: true }],
    ["the site sends the whole file", { status: 200 }],
    ["the site has another version", { headers: { etag: '"v2"' } }],
    ["the part begins elsewhere", { headers: { "content-range": "bytes 7-262/65792" } }],
    ["the site sends fewer bytes", { bytes: () => new Uint8Array(10) }],
  ])("a check reports nothing when %s", async (_name, own) =>
    expect(await pass(ask(make(own).checks)!, changed())).toBe(false),
  );
});
