/**
 * The sample's video as a long one of high bitrates. Its segments repeat (live.ts), and each is filled up to its
 * bitrate with a `free` box (ISO/IEC 14496-12 §8.1.2), which players fetch and skip. So a video that needs a link's
 * whole rate decodes as cheaply as the small one. It has no sound. origin.ts has the routes.
 */
import { sizeBytes } from "./bytes";
import { LiveStream, SEGMENT_MS } from "./live";

export const LONG_SEGMENT_SEC = SEGMENT_MS / 1000;
/** What the master playlist says of each track, with the bits a second that its segments hold. */
export const LONG_LEVELS = [
  { bitsPerSec: 2_500_000, resolution: "416x234", codecs: "avc1.640016" },
  { bitsPerSec: 5_000_000, resolution: "832x468", codecs: "avc1.640028" },
  { bitsPerSec: 10_000_000, resolution: "1280x720", codecs: "avc1.640032" },
] as const;
const FREE_HEADER_BYTES = 8;

export const longSegmentBytes = (track: number): number =>
  ((LONG_LEVELS[track]?.bitsPerSec ?? 0) * LONG_SEGMENT_SEC) / 8;

/** The lowest quality comes first (RFC 8216 §4.3.4.2). */
export function longMaster(): string {
  const streams = LONG_LEVELS.map(
    ({ bitsPerSec, resolution, codecs }, track) =>
      `#EXT-X-STREAM-INF:BANDWIDTH=${bitsPerSec},RESOLUTION=${resolution},CODECS="${codecs}"\nmedia-${track}.m3u8\n`,
  );
  return `#EXTM3U\n#EXT-X-VERSION:7\n${streams.join("")}`;
}

export function longPlaylist(track: number, seconds: number): string {
  const segments = Array.from(
    { length: Math.ceil(seconds / LONG_SEGMENT_SEC) },
    (_, number) => `#EXTINF:${LONG_SEGMENT_SEC},\nsegment-${track}-${number}.m4s\n`,
  );
  return `#EXTM3U
#EXT-X-VERSION:6
#EXT-X-TARGETDURATION:${LONG_SEGMENT_SEC}
#EXT-X-MEDIA-SEQUENCE:0
#EXT-X-MAP:URI="init-${track}.m4s"
${segments.join("")}#EXT-X-ENDLIST
`;
}

/** The same for DASH (ISO/IEC 23009-1 §5.3.9.4). */
export function longManifest(seconds: number): string {
  const levels = LONG_LEVELS.map(({ bitsPerSec, resolution, codecs }, track) => {
    const [width, height] = resolution.split("x");
    return `      <Representation id="${track}" mimeType="video/mp4" codecs="${codecs}"
        bandwidth="${bitsPerSec}" width="${width}" height="${height}"/>
`;
  });
  return `<?xml version="1.0" encoding="utf-8"?>
<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" profiles="urn:mpeg:dash:profile:isoff-live:2011" type="static"
  mediaPresentationDuration="PT${seconds}S" minBufferTime="PT2S">
  <Period id="0" start="PT0S">
    <AdaptationSet contentType="video" segmentAlignment="true" startWithSAP="1">
      <SegmentTemplate timescale="1" duration="${LONG_SEGMENT_SEC}" startNumber="0"
        initialization="init-$RepresentationID$.m4s" media="segment-$RepresentationID$-$Number$.m4s"/>
${levels.join("")}    </AdaptationSet>
  </Period>
</MPD>
`;
}

export class LongVideo {
  readonly #stream: LiveStream;
  #filling = Buffer.alloc(0);

  /** `folder`: the CMAF segments. */
  constructor(folder: string) {
    this.#stream = new LiveStream(folder, 0);
  }

  /** Throws RangeError if the picture alone is larger than its bitrate allows. */
  segment(track: number, number: number): Buffer {
    const picture = this.#stream.segment(String(track), number);
    const freeBytes = longSegmentBytes(track) - picture.length;
    if (freeBytes < FREE_HEADER_BYTES)
      throw new RangeError(
        `segment ${number} of track ${track} has ${picture.length} bytes; ` +
          `its bitrate allows ${longSegmentBytes(track)}`,
      );
    if (this.#filling.length < freeBytes) this.#filling = Buffer.from(sizeBytes(0, freeBytes));
    const header = Buffer.alloc(FREE_HEADER_BYTES);
    header.writeUInt32BE(freeBytes);
    header.write("free", 4, "latin1");
    return Buffer.concat([picture, header, this.#filling.subarray(0, freeBytes - FREE_HEADER_BYTES)]);
  }
}
