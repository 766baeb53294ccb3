/**
 * Live streams out of the sample's segments, played round and round: segment N of a stream is the file's segment N
 * modulo twelve with its decoding time moved on (ISO/IEC 14496-12 §8.8.12). A stream begins some segments before the
 * server started, so that a playlist is full from the start. Pure but for reading the files; routes are origin.ts's.
 *
 * HLS with a sliding playlist (RFC 8216 §6.2.2), low-latency HLS with parts of a quarter of a second and blocking
 * reload
 *   (draft-pantos-hls-rfc8216bis §4.4.4.9, §6.2.5.2), and live DASH by number (ISO/IEC 23009-1 §5.3.9).
 */
import { readFileSync, readdirSync } from "node:fs";
import path from "node:path";

export const SEGMENT_MS = 2000;
export const PARTS_PER_SEGMENT = 8;
const PART_MS = SEGMENT_MS / PARTS_PER_SEGMENT;
const WINDOW_SEGMENTS = 8;
/** Number of segments that exist when the server starts. */
const LEAD_SEGMENTS = 8;
/** The video tracks' units a second. */
const TIMESCALE = 12_288;
const UNITS_PER_SEGMENT = (TIMESCALE * SEGMENT_MS) / 1000;

export class LiveStream {
  readonly #segments = new Map<string, Buffer[]>();

  constructor(
    readonly folder: string,
    readonly startedMs: number,
  ) {}

  /** When segment 0 began, in milliseconds since the epoch. */
  get beganMs(): number {
    return this.startedMs - LEAD_SEGMENTS * SEGMENT_MS;
  }

  /** How many segments, and how many parts of the next one, are complete. */
  completeAt(nowMs: number): { segments: number; parts: number } {
    const parts = Math.max(0, Math.floor((nowMs - this.beganMs) / PART_MS));
    return { segments: Math.floor(parts / PARTS_PER_SEGMENT), parts: parts % PARTS_PER_SEGMENT };
  }

  /** Milliseconds until `parts` parts of segment `number` are complete; 0 when they are. */
  waitMs(number: number, parts: number, nowMs: number): number {
    return Math.max(0, this.beganMs + number * SEGMENT_MS + parts * PART_MS - nowMs);
  }

  segment(track: string, number: number): Buffer {
    const files = this.#filesOf(track);
    return movedTo(files[number % files.length] ?? Buffer.alloc(0), BigInt(number) * BigInt(UNITS_PER_SEGMENT));
  }

  part(track: string, number: number, part: number): Buffer {
    return partOf(this.segment(track, number), part);
  }

  #filesOf(track: string): Buffer[] {
    const known = this.#segments.get(track);
    if (known !== undefined) return known;
    const names = readdirSync(this.folder)
      .filter((name) => name.startsWith(`segment-${track}-`))
      .sort();
    const read = names.map((name) => readFileSync(path.join(this.folder, name)));
    this.#segments.set(track, read);
    return read;
  }

  playlist(track: string, nowMs: number): string {
    const { segments } = this.completeAt(nowMs);
    const first = Math.max(0, segments - WINDOW_SEGMENTS);
    const lines = [
      "#EXTM3U",
      "#EXT-X-VERSION:6",
      `#EXT-X-TARGETDURATION:${SEGMENT_MS / 1000}`,
      `#EXT-X-MEDIA-SEQUENCE:${first}`,
      `#EXT-X-MAP:URI="/media/cmaf/init-${track}.m4s"`,
    ];
    for (let number = first; number < segments; number++)
      lines.push(`#EXTINF:${SEGMENT_MS / 1000},`, `segment-${track}-${number}.m4s`);
    return `${lines.join("\n")}\n`;
  }

  lowLatencyPlaylist(track: string, nowMs: number): string {
    const { segments, parts } = this.completeAt(nowMs);
    const first = Math.max(0, segments - WINDOW_SEGMENTS);
    const partSec = PART_MS / 1000;
    const part = (number: number, index: number): string =>
      `#EXT-X-PART:DURATION=${partSec},URI="part-${track}-${number}-${index}.m4s"` +
      (index === 0 ? ",INDEPENDENT=YES" : "");
    const lines = [
      "#EXTM3U",
      "#EXT-X-VERSION:9",
      `#EXT-X-TARGETDURATION:${SEGMENT_MS / 1000}`,
      `#EXT-X-PART-INF:PART-TARGET=${partSec}`,
      `#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK=${3 * partSec}`,
      `#EXT-X-MEDIA-SEQUENCE:${first}`,
      `#EXT-X-MAP:URI="/media/cmaf/init-${track}.m4s"`,
    ];
    for (let number = first; number < segments; number++) {
      if (number >= segments - 2)
        for (let index = 0; index < PARTS_PER_SEGMENT; index++) lines.push(part(number, index));
      lines.push(`#EXTINF:${SEGMENT_MS / 1000},`, `segment-${track}-${number}.m4s`);
    }
    for (let index = 0; index < parts; index++) lines.push(part(segments, index));
    lines.push(`#EXT-X-PRELOAD-HINT:TYPE=PART,URI="part-${track}-${segments}-${parts}.m4s"`);
    return `${lines.join("\n")}\n`;
  }

  manifest(track: string, codecs: string, nowMs: number): string {
    const iso = (ms: number): string => new Date(ms).toISOString();
    return `<?xml version="1.0" encoding="utf-8"?>
<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" profiles="urn:mpeg:dash:profile:isoff-live:2011" type="dynamic"
  availabilityStartTime="${iso(this.beganMs)}" publishTime="${iso(nowMs)}" minimumUpdatePeriod="PT4S"
  minBufferTime="PT2S"
  timeShiftBufferDepth="PT${(WINDOW_SEGMENTS * SEGMENT_MS) / 1000}S" suggestedPresentationDelay="PT6S"
  maxSegmentDuration="PT2S">
  <Period id="0" start="PT0S">
    <AdaptationSet contentType="video" segmentAlignment="true" startWithSAP="1">
      <Representation id="${track}" mimeType="video/mp4" codecs="${codecs}" bandwidth="900000" width="832" height="468">
        <SegmentTemplate timescale="${TIMESCALE}" duration="${UNITS_PER_SEGMENT}" startNumber="0"
          initialization="/media/cmaf/init-${track}.m4s" media="segment-${track}-$Number$.m4s"/>
      </Representation>
    </AdaptationSet>
  </Period>
  <UTCTiming schemeIdUri="urn:mpeg:dash:utc:direct:2014" value="${iso(nowMs)}"/>
</MPD>
`;
  }
}

/** The segment with its decoding time moved to `baseTime`. Its index box, which has the old time, is left out. */
function movedTo(segment: Buffer, baseTime: bigint): Buffer {
  const moofAt = segment.indexOf("moof") - 4;
  const moved = Buffer.from(segment.subarray(moofAt));
  moved.writeBigUInt64BE(baseTime, moved.indexOf("tfdt") + 8);
  return moved;
}

/** An equal share of a segment's samples as a fragment of its own. */
function partOf(segment: Buffer, part: number): Buffer {
  const tfhdAt = segment.indexOf("tfhd") - 4;
  const tfdtAt = segment.indexOf("tfdt") - 4;
  const runAt = segment.indexOf("trun") - 4;
  const mdatAt = segment.indexOf("mdat", runAt) - 4;
  const sampleDuration = segment.readUInt32BE(tfhdAt + 16);
  const flags = segment.readUInt32BE(runAt + 8) & 0xffffff;
  const count = segment.readUInt32BE(runAt + 12);
  const firstAt = runAt + 16 + 4 + (flags & 4 ? 4 : 0);
  const perSample =
    4 * ((flags & 0x100 ? 1 : 0) + (flags & 0x200 ? 1 : 0) + (flags & 0x400 ? 1 : 0) + (flags & 0x800 ? 1 : 0));
  const from = Math.floor((count * part) / PARTS_PER_SEGMENT);
  const until = Math.floor((count * (part + 1)) / PARTS_PER_SEGMENT);
  const sizeOf = (sample: number): number =>
    segment.readUInt32BE(firstAt + sample * perSample + (flags & 0x100 ? 4 : 0));
  const bytesUntil = (sample: number): number =>
    Array.from({ length: sample }, (_, index) => sizeOf(index)).reduce((sum, size) => sum + size, 0);
  const isKeyFirst = (flags & 4) !== 0 && from === 0;
  const run = Buffer.concat([
    uint32(isKeyFirst ? flags : flags & ~4, until - from, 0, ...(isKeyFirst ? [segment.readUInt32BE(runAt + 20)] : [])),
    segment.subarray(firstAt + from * perSample, firstAt + until * perSample),
  ]);
  run.writeUInt8(segment.readUInt8(runAt + 8), 0);
  const time = Buffer.alloc(12);
  time.writeUInt8(1, 0);
  time.writeBigUInt64BE(segment.readBigUInt64BE(tfdtAt + 12) + BigInt(from * sampleDuration), 4);
  const moof = box(
    "moof",
    box("mfhd", uint32(0, 1)),
    box("traf", segment.subarray(tfhdAt, tfdtAt), box("tfdt", time), box("trun", run)),
  );
  moof.writeUInt32BE(moof.length + 8, moof.indexOf("trun") + 12);
  return Buffer.concat([
    moof,
    box("mdat", segment.subarray(mdatAt + 8 + bytesUntil(from), mdatAt + 8 + bytesUntil(until))),
  ]);
}

function box(type: string, ...parts: Buffer[]): Buffer {
  const body = Buffer.concat(parts);
  return Buffer.concat([uint32(body.length + 8), Buffer.from(type, "latin1"), body]);
}

function uint32(...values: number[]): Buffer {
  const made = Buffer.alloc(4 * values.length);
  values.forEach((value, index) => made.writeUInt32BE(value >>> 0, 4 * index));
  return made;
}
