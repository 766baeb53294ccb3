import {
  carriedAddress,
  carriedHeaders,
  closedRange,
  isManifestUrl,
  isPublishedUrl,
  mediaUrl,
  pageMediaUrl,
  useRules,
} from "./rules";

describe("rules: which addresses are media", () => {
  test.each([
    "http://a.example/seg-1.m4s",
    "https://a.example/v/init.MP4?token=1",
    "https://a.example/x.ts#t=1",
    "http://a.example:8080/a.cmfv",
  ])("%s is media", (url) => expect(mediaUrl(url)?.href).toBeDefined());

  test.each([
    "https://a.example/master.m3u8",
    "https://a.example/x.mpd",
    "https://a.example/key.key",
    "https://a.example/sub.vtt",
    "https://a.example/mp4",
    "https://a.example/x.mp4/list",
    "https://a.example/?file=x.mp4",
    "blob:https://a.example/x.mp4",
    "data:video/mp4,x.mp4",
    "file:///x.mp4",
    "ftp://a.example/x.mp4",
    "https://user:secret@a.example/x.mp4",
    "nonsense",
    "x.mp4",
    `https://a.example/${"a".repeat(8200)}.mp4`,
  ])("%s is not media", (url) => expect(mediaUrl(url)).toBeNull());

  test("a relative address is resolved against the page's", () => {
    expect(mediaUrl("../b.m4s", "https://a.example/x/y/page.html")?.href).toBe("https://a.example/x/b.m4s");
  });

  test("a manifest is recognized and is not media", () => {
    expect(isManifestUrl("https://a.example/a.m3u8?x")).toBe(true);
    expect(isManifestUrl("https://a.example/a.m4s")).toBe(false);
  });

  test("the address of a published file is recognized by its key", () => {
    const folder = `https://a.example/v/${"-_9aZ".repeat(8)}abc/name/`;
    const urls = [`${folder}a/1.m4s`, folder, `https://a.example/v/${"a".repeat(42)}/name/1.m4s`, `${folder}1.m4s?x`];
    expect(urls.map((url) => isPublishedUrl(url))).toEqual([true, false, false, true]);
    expect([isPublishedUrl("1.m4s", folder), isPublishedUrl("1.m4s")]).toEqual([true, false]);
  });
});

describe("rules: which headers can be carried", () => {
  test.each([
    ["bytes=0-0", { start: 0, end: 0 }],
    ["bytes=10-20", { start: 10, end: 20 }],
    [" bytes=1-2 ", { start: 1, end: 2 }],
    ["bytes=5-", undefined],
    ["bytes=-5", undefined],
    ["bytes=20-10", undefined],
    ["bytes=0-1,4-5", undefined],
    ["items=0-1", undefined],
    ["bytes=0x1-2", undefined],
    ["bytes=1-9999999999999999", undefined],
  ])("range %s", (header, expected) => expect(closedRange(header)).toEqual(expected));

  test("Range and Accept are carried, any other header keeps the request native", () => {
    expect(
      carriedHeaders(
        [
          ["Range", "bytes=1-2"],
          ["ACCEPT", "*/*"],
        ],
        false,
      ),
    ).toEqual({ range: { start: 1, end: 2 }, cache: "default" });
    expect(carriedHeaders([], true)).toEqual({ range: null, cache: "default" });
    expect(carriedHeaders([["Authorization", "x"]], true)).toBeUndefined();
    expect(carriedHeaders([["Range", "bytes=1-"]], true)).toBeUndefined();
  });

  test.each([
    [["Cache-Control", "no-cache"], "no-cache"],
    [["Cache-Control", "max-age=0"], "no-cache"],
    [["cache-control", "No-Store, no-cache"], "no-store"],
    [["Pragma", "no-cache"], "no-cache"],
    [["Cache-Control", "max-age=5"], undefined],
    [["Cache-Control", "only-if-cached"], undefined],
  ] as [[string, string], string | undefined][])("the header %j means cache mode %s", (header, cache) => {
    expect(carriedHeaders([header], true)?.cache).toBe(cache);
    // Only the server's answer to a preflight request allows it.
    expect(carriedHeaders([header], false)).toBeUndefined();
  });
});

describe("rules: sites", () => {
  const base = "https://tube.example/static";
  test.each([
    [`${base}/web-videos/1f2e-720.mp4`, true],
    [`${base}/streaming-playlists/hls/1f2e/1f2e-720-fragmented.mp4`, true],
    [`${base}/streaming-playlists/hls/1f2e/master.m3u8`, false],
    [`${base}/web-videos/private/1f2e-720.mp4?videoFileToken=x`, false],
    [`${base}/streaming-playlists/hls/private/1f2e/1f2e-720-fragmented.mp4`, false],
    ["https://rr1---sn.googlevideo.com/videoplayback?ip=192.0.2.1", false],
    ["https://rr1---sn.googlevideo.com/x.mp4", false],
    ["https://cdn.example/private/seg.ts", true],
  ])("%s is carried: %s", (url, isCarried) => expect(mediaUrl(url) !== null).toBe(isCarried));
});

describe("rules: experiments", () => {
  afterEach(() => useRules({ given: [], experimental: false }));
  const video = "https://rr1---sn.googlevideo.com/videoplayback?expire=1&sig=a%2Fb&range=0-99&rn=7&rbuf=1200";

  test("YouTube's GET requests are carried only with experiments on, and nothing else of that host is", () => {
    const isCarried = (url: string): boolean => mediaUrl(url) !== null;
    expect(isCarried(video)).toBe(false);
    useRules({ given: [], experimental: true });
    expect(
      [video, "https://rr1---sn.googlevideo.com/initplayback?x=1", "https://googlevideo.example/videoplayback?x=1"].map(
        isCarried,
      ),
    ).toEqual([true, false, false]);
  });

  test("Origo's rules may exempt YouTube but cannot turn it on", () => {
    const given = (carried: boolean) => [{ host: "*.googlevideo.com", path: "/*", carried }];
    useRules({ given: given(true), experimental: false });
    expect(mediaUrl(video)).toBeNull();
    useRules({ given: given(false), experimental: true });
    expect(mediaUrl(video)).toBeNull();
  });

  test("the carried address leaves out the noise parameters and changes nothing else", () => {
    expect(carriedAddress(new URL(video))).toBe(
      "https://rr1---sn.googlevideo.com/videoplayback?expire=1&sig=a%2Fb&range=0-99",
    );
    expect(carriedAddress(new URL("https://a.example/x.m4s?rn=1"))).toBe("https://a.example/x.m4s?rn=1");
  });
});

test("rules: for a page over https, nothing is asked in the clear", () => {
  const answers = ["https://page.example", "http://page.example"].flatMap((page) =>
    ["https://a.example/1.ts", "http://a.example/1.ts", "http://127.0.0.1/1.ts", "http://a.example/1.css"].map(
      (url) => pageMediaUrl(url, page) !== null,
    ),
  );
  expect(answers).toEqual([true, false, false, false, true, true, true, false]);
});
