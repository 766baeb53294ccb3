import { parseHls, type Master, type Media } from "./hls";

const URL_BASE = "https://cdn.example.org/film/a/list.m3u8?token=1";

const media = (text: string, url = URL_BASE): Media => {
  const parsed = parseHls(`#EXTM3U\n#EXT-X-TARGETDURATION:4\n${text}`, url);
  if (parsed.kind !== "media") throw new Error("a master playlist");
  return parsed;
};
const master = (text: string): Master => {
  const parsed = parseHls(`#EXTM3U\n${text}`, URL_BASE);
  if (parsed.kind !== "master") throw new Error("a media playlist");
  return parsed;
};

test("relative, rooted and absolute addresses begin at the playlist's address", () => {
  const { segments } = media(
    "#EXTINF:4,\ns.ts\n#EXTINF:4,\n/r/s.ts?x=1\n#EXTINF:4,\n//other.example/s.ts\n#EXTINF:4,\nhttp://o.example/s.ts\n",
  );
  expect(segments.map(({ url }) => url)).toEqual([
    "https://cdn.example.org/film/a/s.ts",
    "https://cdn.example.org/r/s.ts?x=1",
    "https://other.example/s.ts",
    "http://o.example/s.ts",
  ]);
});

test("a byte order mark, CRLF, blank lines, unknown tags and titles in any language do no harm", () => {
  const text = "\uFEFF#EXTM3U\r\n#EXT-X-FOO:1\r\n\r\n#EXTINF:3.5,Tür 東京, two\r\ns.ts\r\n#EXT-X-ENDLIST";
  expect(parseHls(text, URL_BASE)).toMatchObject({ isLive: false, segments: [{ durationSec: 3.5, stretch: 0 }] });
});

test("byte ranges without an offset follow the one before, in segments and init segments", () => {
  const { segments } = media(
    '#EXT-X-MAP:URI="v.mp4",BYTERANGE="700@0"\n#EXTINF:4,\n#EXT-X-BYTERANGE:100@700\nv.mp4\n' +
      "#EXTINF:4,\n#EXT-X-BYTERANGE:50\nv.mp4\n",
  );
  expect(segments.map(({ range }) => range)).toEqual([
    { start: 700, end: 799 },
    { start: 800, end: 849 },
  ]);
  expect(segments[0]?.init).toEqual({ url: "https://cdn.example.org/film/a/v.mp4", range: { start: 0, end: 699 } });
});

test("a discontinuity and another init segment begin a stretch", () => {
  const { segments } = media(
    '#EXT-X-MAP:URI="a.mp4"\n#EXTINF:4,\n1\n#EXTINF:4,\n2\n#EXT-X-DISCONTINUITY\n#EXTINF:4,\n3\n' +
      '#EXT-X-MAP:URI="b.mp4"\n#EXTINF:4,\n4\n',
  );
  expect(segments.map(({ stretch }) => stretch)).toEqual([0, 0, 1, 2]);
});

test("keys: the sequence number is the IV where none is given, NONE ends a key, a key may rotate", () => {
  const { segments } = media(
    '#EXT-X-MEDIA-SEQUENCE:258\n#EXTINF:4,\n0.ts\n#EXT-X-KEY:METHOD=AES-128,URI="k1"\n#EXTINF:4,\n1.ts\n' +
      '#EXT-X-KEY:METHOD=AES-128,URI="k2",IV=0x000102030405060708090a0b0c0d0e0f\n#EXTINF:4,\n2.ts\n' +
      "#EXT-X-KEY:METHOD=NONE\n#EXTINF:4,\n3.ts\n",
  );
  expect(segments.map(({ key }) => key && [key.url.split("/").at(-1), Buffer.from(key.iv).toString("hex")])).toEqual([
    undefined,
    ["k1", "00000000000000000000000000000103"],
    ["k2", "000102030405060708090a0b0c0d0e0f"],
    undefined,
  ]);
});

test("an init segment before the key tag is in the clear, and one after it is encrypted", () => {
  const key = '#EXT-X-KEY:METHOD=AES-128,URI="k",IV=0x00000000000000000000000000000001\n';
  const map = '#EXT-X-MAP:URI="i.mp4"\n';
  expect(media(`${map}${key}#EXTINF:4,\n1\n`).segments[0]?.init?.key).toBeUndefined();
  expect(media(`${key}${map}#EXTINF:4,\n1\n`).segments[0]?.init?.key?.url).toMatch(/\/k$/);
});

test.each([
  ["FairPlay", 'METHOD=SAMPLE-AES,URI="skd://1",KEYFORMAT="com.apple.streamingkeydelivery",KEYFORMATVERSIONS="1"'],
  ["Widevine", 'METHOD=SAMPLE-AES-CTR,URI="x",KEYFORMAT="urn:uuid:edef8ba9-79d6-4ace-a3c8-27dcd51d21ed"'],
  ["PlayReady", 'METHOD=SAMPLE-AES,URI="data:,",KEYFORMAT="com.microsoft.playready"'],
  ["SAMPLE-AES", 'METHOD=SAMPLE-AES,URI="key"'],
  ["com.example.own", 'METHOD=SAMPLE-AES,URI="key",KEYFORMAT="com.example.own"'],
])("a video that is encrypted with %s is refused by that name", (name, attributes) => {
  expect(() => media(`#EXT-X-KEY:${attributes}\n#EXTINF:4,\n1.ts\n`)).toThrow(name);
});

test("a segment with a key for AES-128 beside one for FairPlay opens with the former", () => {
  const { segments } = media(
    '#EXT-X-KEY:METHOD=SAMPLE-AES,URI="skd://1",KEYFORMAT="com.apple.streamingkeydelivery"\n' +
      '#EXT-X-KEY:METHOD=AES-128,URI="k"\n#EXTINF:4,\n1.ts\n',
  );
  expect(segments[0]?.key?.url).toMatch(/\/k$/);
});

test("gaps are marked, and their keys are not asked for", () => {
  const { segments } = media("#EXTINF:4,\n1.ts\n#EXT-X-GAP\n#EXTINF:4,\n2.ts\n#EXTINF:4,\n3.ts\n");
  expect(segments.map(({ isGap }) => isGap)).toEqual([false, true, false]);
});

test.each(["file:///etc/passwd", "data:video/mp4,abc", "concat:a|b"])("the address %s is refused", (address) => {
  expect(() => media(`#EXTINF:4,\n${address}\n`)).toThrow(/not allowed: got (file|data|concat):/);
});

test("live: without ENDLIST it is, EVENT keeps its beginning, the target duration says when to read again", () => {
  expect(media("#EXTINF:4,\n1.ts\n")).toMatchObject({ isLive: true, isFromStart: false, refreshSec: 4 });
  expect(media("#EXT-X-PLAYLIST-TYPE:EVENT\n#EXTINF:4,\n1.ts\n")).toMatchObject({ isLive: true, isFromStart: true });
  expect(media("#EXTINF:4,\n1.ts\n#EXT-X-ENDLIST\n").isLive).toBe(false);
});

test("a master playlist: pictures, sounds and subtitles with their groups; lists of I-frames are none", () => {
  const parsed = master(
    '#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="English",LANGUAGE="en",DEFAULT=YES,URI="en.m3u8"\n' +
      '#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="in the picture",LANGUAGE="de"\n' +
      '#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID="s",NAME="fr",LANGUAGE="fr",FORCED=YES,URI="fr.m3u8"\n' +
      '#EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=9000000,RESOLUTION=3840x2160,URI="iframes.m3u8"\n' +
      '#EXT-X-STREAM-INF:BANDWIDTH=2000000,RESOLUTION=1280x720,CODECS="avc1.64001f",AUDIO="a",SUBTITLES="s"\n' +
      "720.m3u8\n#EXT-X-STREAM-INF:BANDWIDTH=64000\nsound.m3u8\n",
  );
  expect(parsed.pictures).toMatchObject([
    {
      url: "https://cdn.example.org/film/a/720.m3u8",
      width: 1280,
      height: 720,
      groups: { audio: "a", subtitles: "s" },
    },
    { url: "https://cdn.example.org/film/a/sound.m3u8", bandwidth: 64_000, groups: {} },
  ]);
  expect(parsed.sounds).toMatchObject([
    { language: "en", isDefault: true, group: "a", url: "https://cdn.example.org/film/a/en.m3u8" },
    { language: "de", isDefault: false, url: undefined },
  ]);
  expect(parsed.subtitles).toMatchObject([{ language: "fr", isForced: true, group: "s" }]);
});

test("a variable of the address is put into segments (EXT-X-DEFINE)", () => {
  const { segments } = media('#EXT-X-DEFINE:QUERYPARAM="token"\n#EXTINF:4,\ns.ts?t={$token}\n');
  expect(segments[0]?.url).toBe("https://cdn.example.org/film/a/s.ts?t=1");
  expect(() => media('#EXT-X-DEFINE:QUERYPARAM="absent"\n#EXTINF:4,\ns.ts\n')).toThrow(/absent/);
});
