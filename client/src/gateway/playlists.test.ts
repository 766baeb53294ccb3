/** Playlists through the gateway: every address that would lead past it is rewritten, and nothing else changes. */
import { rewriteDash } from "./dash";
import { rewriteHls } from "./hls";

const GATEWAY = "http://127.0.0.1:7690";

function collected(base: string) {
  const seen: Record<"segment" | "small" | "template", string[]> = { segment: [], small: [], template: [] };
  const playlist = {
    base: new URL(base),
    gateway: GATEWAY,
    onSegment: (url: URL) => void seen.segment.push(url.href),
    onSmall: (url: URL) => void seen.small.push(url.href),
    onTemplate: (url: URL) => void seen.template.push(url.href),
  };
  return { seen, playlist };
}

describe("HLS", () => {
  test("addresses of segments, keys, maps and renditions", () => {
    const { seen, playlist } = collected("https://example.org/v/list.m3u8");
    const text = [
      "#EXTM3U",
      '#EXT-X-KEY:METHOD=AES-128,URI="https://keys.example/k?id=1",IV=0x01',
      '#EXT-X-MAP:URI="/init.mp4",BYTERANGE="10@0"',
      "#EXTINF:4,https://not.an.address/",
      "https://cdn.example/1.ts",
      "#EXT-X-UNKNOWN:SOME=1",
      "#EXTINF:4,",
      "2.ts?token=a/b",
      "",
    ].join("\r\n");
    expect(rewriteHls(text, playlist).split("\r\n")).toEqual([
      "#EXTM3U",
      `#EXT-X-KEY:METHOD=AES-128,URI="${GATEWAY}/https/keys.example/k?id=1",IV=0x01`,
      '#EXT-X-MAP:URI="/https/example.org/init.mp4",BYTERANGE="10@0"',
      "#EXTINF:4,https://not.an.address/",
      `${GATEWAY}/https/cdn.example/1.ts`,
      "#EXT-X-UNKNOWN:SOME=1",
      "#EXTINF:4,",
      "2.ts?token=a/b",
      "",
    ]);
    expect(seen.small).toEqual(["https://keys.example/k?id=1"]);
    expect(seen.segment).toEqual([
      "https://example.org/init.mp4",
      "https://cdn.example/1.ts",
      "https://example.org/v/2.ts?token=a/b",
    ]);
  });

  test("a master playlist names playlists", () => {
    const { seen, playlist } = collected("https://example.org/master.m3u8");
    const text =
      '#EXTM3U\n#EXT-X-MEDIA:TYPE=AUDIO,NAME="a, URI=x",URI="//b.example/a.m3u8"\n' +
      '#EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=1,URI="i.m3u8"\n#EXT-X-SESSION-KEY:METHOD=AES-128,URI="/k"\n' +
      '#EXT-X-CONTENT-STEERING:SERVER-URI="https://s.example/",PATHWAY-ID="a"\n' +
      "#EXT-X-STREAM-INF:BANDWIDTH=2\n\n# a comment\nhttps://c.example/v\n";
    const made = rewriteHls(text, playlist);
    expect(made).toContain(`NAME="a, URI=x",URI="${GATEWAY}/https/b.example/a.m3u8"`);
    expect(made).toContain('URI="i.m3u8"');
    expect(made).toContain('URI="/https/example.org/k"');
    expect(made).toContain(`SERVER-URI="${GATEWAY}/https/s.example/"`);
    expect(made).toContain(`\n${GATEWAY}/https/c.example/v\n`);
    expect(seen.segment).toEqual([]);
    expect(seen.small).toHaveLength(5);
  });

  test("low latency: parts and hints are segments, and reports are playlists", () => {
    const { seen, playlist } = collected("https://example.org/l/v.m3u8?_HLS_msn=7&_HLS_part=1");
    const tags = [
      "#EXTM3U",
      "#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK=1.0",
      '#EXT-X-PART:DURATION=0.33,URI="p1.mp4",INDEPENDENT=YES',
      '#EXT-X-PART:DURATION=0.33,URI="https://cdn.example/p2.mp4",BYTERANGE="10@0"',
      '#EXT-X-PRELOAD-HINT:TYPE=PART,URI="/p3.mp4",BYTERANGE-START=20',
      '#EXT-X-RENDITION-REPORT:URI="../a/a.m3u8?x=1",LAST-MSN=7,LAST-PART=1',
      "",
    ];
    expect(rewriteHls(tags.join("\n"), playlist).split("\n")).toEqual([
      ...tags.slice(0, 3),
      `#EXT-X-PART:DURATION=0.33,URI="${GATEWAY}/https/cdn.example/p2.mp4",BYTERANGE="10@0"`,
      '#EXT-X-PRELOAD-HINT:TYPE=PART,URI="/https/example.org/p3.mp4",BYTERANGE-START=20',
      ...tags.slice(5),
    ]);
    expect(seen.segment.map((url) => url.split("/").at(-1))).toEqual(["p1.mp4", "p2.mp4", "p3.mp4"]);
    expect(seen.small).toEqual(["https://example.org/a/a.m3u8?x=1"]);
  });

  test("variables get their values, and unknown ones stay", () => {
    const { playlist } = collected("https://example.org/m.m3u8?cdn=c.example");
    const text =
      '#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXT-X-DEFINE:NAME="folder",VALUE="v"\n#EXT-X-DEFINE:QUERYPARAM="cdn"\n' +
      "#EXTINF:4,\nhttps://{$cdn}/{$folder}/1.ts\n#EXTINF:4,\nhttps://{$other}/2.ts\n";
    const made = rewriteHls(text, playlist);
    expect(made).toContain(`\n${GATEWAY}/https/c.example/v/1.ts\n`);
    expect(made).toContain("\nhttps://{$other}/2.ts\n");
  });
});

describe("DASH", () => {
  const mpd = (body: string): string =>
    `<?xml version="1.0"?>\n<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" xmlns:xlink="http://www.w3.org/1999/xlink">` +
    `<!-- kept --><x:Own xmlns:x="urn:own">https://stays.example/</x:Own>${body}</MPD>`;

  test("BaseURL, Location, templates, lists and links", () => {
    const { seen, playlist } = collected("https://example.org/d/stream.mpd");
    const made = rewriteDash(
      mpd(
        "<Location>https://other.example/live.mpd</Location><BaseURL> https://cdn.example/base/ </BaseURL>" +
          "<BaseURL>https://cdn2.example/base/</BaseURL>" +
          '<Period xlink:href="https://links.example/p"><AdaptationSet>' +
          '<SegmentTemplate media="$RepresentationID$/s-$Number%05d$.m4s" initialization="/i.mp4"/>' +
          '<Representation id="a&amp;b"><BaseURL>https://third.example/r/</BaseURL><SegmentList>' +
          '<Initialization sourceURL="https://third.example/i.mp4"/><SegmentURL media="/1.m4s" mediaRange="0-9"/>' +
          "</SegmentList></Representation></AdaptationSet></Period>" +
          '<UTCTiming schemeIdUri="urn:mpeg:dash:utc:http-iso:2014" value="https://t1.example/ https://t2.example/"/>',
      ),
      playlist,
    );
    for (const part of [
      `<Location>${GATEWAY}/https/other.example/live.mpd</Location>`,
      `<BaseURL>${GATEWAY}/https/cdn.example/base/</BaseURL>`,
      `<BaseURL>${GATEWAY}/https/cdn2.example/base/</BaseURL>`,
      `xlink:href="${GATEWAY}/https/links.example/p"`,
      'media="$RepresentationID$/s-$Number%05d$.m4s"',
      'initialization="/https/cdn.example/i.mp4"',
      `sourceURL="/https/third.example/i.mp4"`,
      'media="/https/third.example/1.m4s" mediaRange="0-9"',
      `value="${GATEWAY}/https/t1.example/ ${GATEWAY}/https/t2.example/"`,
      "<!-- kept -->",
      ">https://stays.example/<",
      'id="a&amp;b"',
    ])
      expect(made).toContain(part);
    expect(seen.template).toEqual(["https://cdn.example/base/$RepresentationID$/s-$Number%05d$.m4s"]);
    expect(seen.segment).toContain("https://third.example/1.m4s");
  });

  test("a document that is not XML stays as it is", () => {
    expect(rewriteDash("<MPD", collected("https://example.org/s.mpd").playlist)).toBe("<MPD");
  });
});
