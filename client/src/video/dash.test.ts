import { parseDash, type DashManifest } from "./dash";

const URL_BASE = "https://cdn.example.org/film/stream.mpd?token=1";

const mpd = (body: string, attributes = 'type="static" mediaPresentationDuration="PT12S"'): DashManifest =>
  parseDash(
    `<?xml version="1.0"?>\n<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" ${attributes}>${body}</MPD>`,
    URL_BASE,
    0,
  );
const set = (body: string, attributes = ""): string =>
  `<AdaptationSet mimeType="video/mp4" ${attributes}>${body}</AdaptationSet>`;
const representation = (id: string, body = "", height = 720): string =>
  `<Representation id="${id}" bandwidth="1000" width="1" height="${height}">${body}</Representation>`;
const addresses = ({ renditions }: DashManifest, index = 0): string[] =>
  renditions[index]!.parts.flatMap((part) =>
    "segments" in part ? part.segments.map(({ url }) => url.split("/").at(-1)!) : [`whole ${part.wholeUrl}`],
  );

test("SegmentTemplate with $Number$, a width and startNumber: as many segments as the duration holds", () => {
  const template =
    '<SegmentTemplate timescale="10" duration="42" startNumber="5" initialization="i" media="s-$Number%03d$.m4s"/>';
  const manifest = mpd(`<Period>${set(template + representation("v"))}</Period>`);
  expect(addresses(manifest)).toEqual(["s-005.m4s", "s-006.m4s", "s-007.m4s"]);
  expect(manifest.renditions[0]!.parts[0]).toMatchObject({
    segments: [{ init: { url: "https://cdn.example.org/film/i" }, durationSec: 4.2 }, {}, {}],
  });
});

test("a duration that divides evenly adds no segment by rounding", () => {
  const template = '<SegmentTemplate timescale="10" duration="14" media="$Number$"/>';
  const manifest = mpd(`<Period>${set(template + representation("v"))}</Period>`, 'mediaPresentationDuration="PT4.2S"');
  expect(addresses(manifest)).toEqual(["1", "2", "3"]);
});

test("SegmentTimeline with $Time$, a repeat and a repeat to the end", () => {
  const timeline = '<SegmentTimeline><S t="100" d="2" r="1"/><S d="3" r="-1"/></SegmentTimeline>';
  const media = 'presentationTimeOffset="100" media="$RepresentationID$-$Time$"';
  const template = `<SegmentTemplate ${media}>${timeline}</SegmentTemplate>`;
  const manifest = mpd(`<Period>${set(template + representation("v"))}</Period>`);
  expect(addresses(manifest)).toEqual(["v-100", "v-102", "v-104", "v-107", "v-110"]);
});

test("representations of one set are the same sound in several rates", () => {
  const sound = (id: string): string =>
    `<Representation id="${id}" bandwidth="1"><BaseURL>${id}</BaseURL></Representation>`;
  const sets = set(sound("a") + sound("b"), 'contentType="audio"') + set(sound("c"), 'contentType="audio"');
  expect(mpd(`<Period>${sets}</Period>`).renditions.map(({ id, set: of }) => [id, of])).toEqual([
    ["a", "0"],
    ["b", "0"],
    ["c", "1"],
  ]);
});

test("endNumber counts from startNumber", () => {
  const template = '<SegmentTemplate duration="2" startNumber="4" endNumber="6" media="$Number$"/>';
  expect(addresses(mpd(`<Period>${set(template + representation("v"))}</Period>`))).toEqual(["4", "5", "6"]);
});

test("SegmentBase is a whole file, and so is a BaseURL alone", () => {
  const base = '<BaseURL>v.mp4</BaseURL><SegmentBase indexRange="100-199"><Initialization range="0-99"/></SegmentBase>';
  const manifest = mpd(
    `<Period>${set(representation("a", base) + representation("b", "<BaseURL>/w.mp4</BaseURL>"))}</Period>`,
  );
  expect(addresses(manifest)).toEqual(["whole https://cdn.example.org/film/v.mp4"]);
  expect(addresses(manifest, 1)).toEqual(["whole https://cdn.example.org/w.mp4"]);
});

test("SegmentBase without an index is a whole file, also with its beginning at another address", () => {
  const base = (inner: string): string =>
    `<BaseURL>v.mp4</BaseURL><SegmentBase timescale="1000">${inner}</SegmentBase>`;
  const apart = '<Initialization sourceURL="i.mp4" range="0-9"/>';
  const all = [base(""), base('<Initialization range="0-99"/>'), base(apart)].map((body, index) =>
    representation(String(index), body),
  );
  const manifest = mpd(`<Period>${set(all.join(""))}</Period>`);
  expect([0, 1, 2].flatMap((index) => addresses(manifest, index))).toEqual(
    Array(3).fill("whole https://cdn.example.org/film/v.mp4"),
  );
  expect(manifest.renditions.map(({ parts }) => "init" in parts[0]! && parts[0].init)).toEqual([
    false,
    false,
    { url: "https://cdn.example.org/film/i.mp4", range: { start: 0, end: 9 } },
  ]);
});

test("periods are joined in stretches, also when their representations have other names", () => {
  const template = '<SegmentTemplate duration="3" media="$RepresentationID$-$Number$"/>';
  const manifest = mpd(
    `<Period duration="PT6S">${set(template + representation("low", "", 360) + representation("high"))}</Period>` +
      `<Period>${set(template + representation("x", "", 300) + representation("y", "", 700))}</Period>`,
  );
  expect(addresses(manifest, 0)).toEqual(["low-1", "low-2", "x-1", "x-2"]);
  expect(addresses(manifest, 1)).toEqual(["high-1", "high-2", "y-1", "y-2"]);
  const parts = manifest.renditions[1]!.parts;
  expect(parts.flatMap((part) => ("segments" in part ? part.segments.map(({ stretch }) => stretch) : []))).toEqual([
    0, 0, 1, 1,
  ]);
});

test.each([
  ["Widevine", "urn:uuid:EDEF8BA9-79D6-4ACE-A3C8-27DCD51D21ED"],
  ["PlayReady", "urn:uuid:9a04f079-9840-4286-ab92-e65be0885f95"],
  ["Common Encryption (cbcs)", "urn:mpeg:dash:mp4protection:2011"],
  ["urn:uuid:00000000-0000-0000-0000-000000000000", "urn:uuid:00000000-0000-0000-0000-000000000000"],
])("a track that is encrypted with %s says so", (name, scheme) => {
  const element = `<ContentProtection schemeIdUri="${scheme}" value="cbcs"/>`;
  expect(mpd(`<Period>${set(element + representation("v"))}</Period>`).renditions[0]?.protection).toBe(name);
  expect(mpd(`<Period>${set(representation("v", element))}</Period>`).renditions[0]?.protection).toBe(name);
});

test("thumbnails and images are not tracks", () => {
  const trick = '<EssentialProperty schemeIdUri="http://dashif.org/guidelines/trickmode" value="1"/>';
  const images = '<AdaptationSet mimeType="image/jpeg"><Representation id="i" bandwidth="1"/></AdaptationSet>';
  const manifest = mpd(`<Period>${set(trick + representation("t"))}${images}${set(representation("v"))}</Period>`);
  expect(manifest.renditions.map(({ id }) => id)).toEqual(["v"]);
});

test("live without an end of its window: only the last minute is listed", () => {
  const template = '<SegmentTemplate duration="2" startNumber="0" media="$Number$"/>';
  const manifest = parseDash(
    `<MPD type="dynamic" availabilityStartTime="1970-01-01T00:00:00Z"><Period start="PT0S">` +
      `${set(template + representation("v"))}</Period></MPD>`,
    URL_BASE,
    1_700_000_000_000,
  );
  expect(manifest.isLive).toBe(true);
  expect(addresses(manifest)).toHaveLength(30);
  expect(addresses(manifest).at(-1)).toBe("849999999");
});

test.each([
  ["not XML", "<MPD"],
  ["no period", '<MPD type="static"></MPD>'],
  [
    "a file of this machine",
    '<MPD mediaPresentationDuration="PT1S"><Period><BaseURL>file:///etc/passwd</BaseURL>' +
      set(representation("v")) +
      "</Period></MPD>",
  ],
])("%s is refused", (_name, text) => {
  expect(() => parseDash(text, URL_BASE, 0)).toThrow(/The manifest (is not valid|names an address)/);
});
