import {
  DIRECT_MS,
  Detours,
  FAILURES_MAX,
  FAILURE_APART_MS,
  REST_MS,
  SMALL_BYTES,
  SMALL_IN_A_ROW,
  SMALL_MS,
  type DirectReason,
} from "./detours";

const PAGE = "https://page.example";
const OTHER_PAGE = "https://other.example";
const make = (): Detours => new Detours(() => 1_000_000);

describe("detours: a host that fails repeatedly rests", () => {
  test("after three failures in a row, for a while, for pages of the origin that saw them", () => {
    const detours = make();
    let nowMs = 0;
    for (let failure = 1; failure <= FAILURES_MAX; failure++) {
      expect(detours.isDirect("a.example", PAGE, nowMs)).toBe(false);
      nowMs += FAILURE_APART_MS;
      detours.noteFailure("a.example", PAGE, "proxyLost", "gone", nowMs);
    }
    expect(detours.isDirect("a.example", PAGE, nowMs + REST_MS - 1)).toBe(true);
    expect([detours.isDirect("b.example", PAGE, nowMs), detours.isDirect("a.example", OTHER_PAGE, nowMs)]).toEqual([
      false,
      false,
    ]);
    expect(detours.isDirect("a.example", PAGE, nowMs + REST_MS)).toBe(false);
  });

  test("failures close together count once", () => {
    const detours = make();
    for (let failure = 0; failure < 10; failure++) detours.noteFailure("a.example", PAGE, "proxyLost", "gone", failure);
    expect(detours.isDirect("a.example", PAGE, 100)).toBe(false);
  });

  test("a success in between resets the count", () => {
    const detours = make();
    for (let failure = 1; failure <= 2 * FAILURES_MAX; failure++) {
      detours.noteFailure("a.example", PAGE, "proxyLost", "gone", failure * FAILURE_APART_MS);
      if (failure % 2 === 0) detours.noteSuccess("a.example", PAGE);
    }
    expect(detours.isDirect("a.example", PAGE, 100_000)).toBe(false);
  });
});

describe("detours: what the popup shows", () => {
  test("a fallback counts, and its reason stays until a success", () => {
    const detours = make();
    detours.noteFallback("noProxies", "none");
    expect([detours.fallbacks, detours.trouble?.kind]).toEqual([1, "noProxies"]);
    detours.noteSuccess("a.example", PAGE);
    expect([detours.fallbacks, detours.trouble]).toEqual([1, null]);
  });

  test.each([
    ["origoUnreachable", "origoUnreachable"],
    ["noProxies", "noProxies"],
    ["proxyLost", "resting"],
  ])("while a host rests after %s, the reason is %s", (kind, shown) => {
    const detours = make();
    for (let failure = 1; failure <= FAILURES_MAX; failure++)
      detours.noteFailure("a.example", PAGE, kind, "why", failure * FAILURE_APART_MS);
    expect(detours.isDirect("a.example", PAGE, FAILURES_MAX * FAILURE_APART_MS)).toBe(true);
    expect(detours.trouble).toMatchObject({ kind: shown, detail: "why" });
  });

  test("a request that the proxies never carry is no fallback", () => {
    const detours = make();
    detours.noteFallback("rule", "");
    detours.noteFallback("direct-mode", "");
    expect([detours.fallbacks, detours.trouble]).toEqual([0, null]);
  });

  test("a page can claim a bounded number of bytes", () => {
    const detours = make();
    detours.noteDirect(Number.MAX_SAFE_INTEGER);
    expect(detours.directBytes).toBe(2 ** 32);
  });
});

describe("detours: chunks that are too small to gain", () => {
  const part = (number: number): URL => new URL(`https://a.example/live/part-${number}.m4s?t=${number}`);
  const noted = (sizes: number[]): Detours => {
    const detours = make();
    sizes.forEach((bytes, at) => detours.noteSize(part(at), PAGE, bytes, 0));
    return detours;
  };
  const small = Array<number>(SMALL_IN_A_ROW).fill(SMALL_BYTES);

  test("go direct after several in a row, for a while, for this kind of chunk and this origin only", () => {
    expect(noted(small.slice(1)).isSmall(part(99), PAGE, 0)).toBe(false);
    const detours = noted(small);
    expect([detours.isSmall(part(99), PAGE, SMALL_MS - 1), detours.isSmall(part(99), PAGE, SMALL_MS)]).toEqual([
      true,
      false,
    ]);
    expect(detours.isSmall(new URL("https://a.example/live/segment-99.m4s"), PAGE, 0)).toBe(false);
    expect(detours.isSmall(part(99), OTHER_PAGE, 0)).toBe(false);
  });

  test("a large chunk in between resets the count", () => {
    expect(noted([...small.slice(1), SMALL_BYTES + 1, SMALL_BYTES]).isSmall(part(99), PAGE, 0)).toBe(false);
  });
});

describe("detours: a host that is direct for long", () => {
  test.each(Object.keys(DIRECT_MS) as DirectReason[])("for the reason %s, for pages of that origin only", (reason) => {
    const detours = make();
    detours.noteDirectHost("a.example", PAGE, reason, "why", 0);
    const lastMs = DIRECT_MS[reason] - 1;
    expect(["a.example", "b.example"].map((host) => detours.isDirect(host, PAGE, lastMs))).toEqual([true, false]);
    expect(detours.trouble).toMatchObject({ kind: reason, detail: "why" });
    expect(detours.isDirect("a.example", OTHER_PAGE, 1)).toBe(false);
    expect(detours.isDirect("a.example", PAGE, DIRECT_MS[reason])).toBe(false);
  });

  const MISSING = { url: "https://a.example/1.ts", status: 404 };

  test("is tried again if the site gives the page the same status for the same address", () => {
    const detours = make();
    detours.noteStatus(MISSING, PAGE, 0);
    for (const other of [
      { ...MISSING, status: 410 },
      { ...MISSING, url: "https://a.example/2.ts" },
    ])
      detours.forgiveStatus(other, PAGE);
    detours.forgiveStatus(MISSING, OTHER_PAGE);
    expect([detours.isDirect("a.example", PAGE, 1), detours.trouble?.kind]).toEqual([true, "status"]);
    detours.forgiveStatus(MISSING, PAGE);
    expect([detours.isDirect("a.example", PAGE, 1), detours.trouble]).toEqual([false, null]);
  });

  test.each([401, 403, 410, 429, 503])("stays direct after %i, because the proxies may be the reason", (status) => {
    const detours = make();
    detours.noteStatus({ ...MISSING, status }, PAGE, 0);
    detours.forgiveStatus({ ...MISSING, status }, PAGE);
    expect([detours.isDirect("a.example", PAGE, DIRECT_MS.status - 1), detours.trouble?.kind]).toEqual([
      true,
      status === 429 || status === 503 ? "limited" : "status",
    ]);
  });

  test("is tried again after a change of the settings, and not because of another status", () => {
    const detours = make();
    detours.noteDirectHost("a.example", PAGE, "differs", "a.example", 0);
    detours.forgiveStatus(MISSING, PAGE);
    expect(detours.isDirect("a.example", PAGE, 1)).toBe(true);
    detours.reset();
    expect(detours.isDirect("a.example", PAGE, 1)).toBe(false);
  });
});
