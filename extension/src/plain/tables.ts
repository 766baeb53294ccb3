/** Tables: reads the samples of a track from its sample tables (ISO/IEC 14496-12 §8.6, §8.7). Pure. */
import { boxIn, int32, OwnRangeError, uint32, uint64, type Box, type Bytes } from "./boxes";
import { globalOf } from "../shared/primordials";
import { min, OwnBytes } from "../shared/late-primordials";

export interface Sample {
  /** In the track's units. */
  decodeTime: number;
  /** Presentation time minus `decodeTime`; can be negative. */
  offsetTime: number;
  duration: number;
  /** Offset in the file. */
  position: number;
  bytes: number;
  isSync: boolean;
}

/** 24 hours at 60 frames a second have 5.2 million samples. A file with more is not read into memory. */
const SAMPLES_MAX = 6_000_000;

const Numbers = globalOf("Float64Array");

export class Tables {
  readonly count: number;
  readonly #times: Float64Array;
  readonly #offsets: Float64Array;
  readonly #sizes: Float64Array;
  readonly #positions: Float64Array;
  readonly #syncs: Uint8Array;

  /**
   * The edit list subtracts `shift` from every presentation time. Throws RangeError if the tables contradict each
   * other.
   */
  constructor(stbl: readonly Box[], shift: number) {
    const find = (type: string): Bytes | undefined => boxIn(stbl, type)?.body;
    const stsz = find("stsz");
    if (stsz === undefined) throw new OwnRangeError("no sample sizes");
    const count = (this.count = uint32(stsz, 8));
    if (count > SAMPLES_MAX) throw new OwnRangeError(`${count} samples`);
    this.#sizes = readSizes(stsz, count);
    const durations = expand(find("stts"), count);
    this.#times = new Numbers(count + 1);
    for (let index = 0; index < count; index++) this.#times[index + 1] = this.#times[index]! + durations[index]!;
    const composition = find("ctts");
    this.#offsets = composition === undefined ? new Numbers(count) : expand(composition, count);
    for (let index = 0; index < count; index++) this.#offsets[index]! -= shift;
    this.#positions = readPositions(find("stco"), find("co64"), find("stsc"), this.#sizes, count);
    this.#syncs = readSyncs(find("stss"), count);
  }

  at(index: number): Sample {
    return {
      decodeTime: this.#times[index] ?? 0,
      offsetTime: this.#offsets[index] ?? 0,
      duration: (this.#times[index + 1] ?? 0) - (this.#times[index] ?? 0),
      position: this.#positions[index] ?? 0,
      bytes: this.#sizes[index] ?? 0,
      isSync: this.#syncs[index] === 1,
    };
  }

  /** The first sample that the edit list shows. */
  get firstShown(): number {
    let index = 0;
    while (index < this.count && (this.#times[index] ?? 0) + (this.#offsets[index] ?? 0) < 0) index++;
    return index;
  }

  /** The first sample with a decoding time of `time` or later. */
  firstFrom(time: number): number {
    let low = 0;
    let high = this.count;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#times[middle] ?? 0) < time) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

function readSizes(stsz: Bytes, count: number): Float64Array {
  const same = uint32(stsz, 4);
  const sizes = new Numbers(count);
  for (let index = 0; index < count; index++) sizes[index] = same === 0 ? uint32(stsz, 12 + 4 * index) : same;
  return sizes;
}

/** Expands the runs of (count, value) in `stts` and `ctts`. */
function expand(table: Bytes | undefined, count: number): Float64Array {
  const values = new Numbers(count);
  const runCount = table === undefined ? 0 : uint32(table, 4);
  let at = 0;
  for (let run = 0; run < runCount && table !== undefined; run++) {
    const until = at + uint32(table, 8 + 8 * run);
    const value = int32(table, 12 + 8 * run);
    for (let sample = at, end = min(until, count); sample < end; sample++) values[sample] = value;
    at = until;
  }
  if (at !== count) throw new OwnRangeError(`a table of ${at} samples for ${count}`);
  return values;
}

function readPositions(
  stco: Bytes | undefined,
  co64: Bytes | undefined,
  stsc: Bytes | undefined,
  sizes: Float64Array,
  count: number,
): Float64Array {
  const chunks = stco ?? co64;
  if (chunks === undefined || stsc === undefined) throw new OwnRangeError("no chunks");
  const chunkCount = uint32(chunks, 4);
  const runCount = uint32(stsc, 4);
  const positions = new Numbers(count);
  let sample = 0;
  for (let run = 0; run < runCount; run++) {
    const next = run + 1 < runCount ? uint32(stsc, 8 + 12 * (run + 1)) - 1 : chunkCount;
    const perChunk = uint32(stsc, 12 + 12 * run);
    for (let chunk = uint32(stsc, 8 + 12 * run) - 1; chunk < next && sample < count; chunk++) {
      let position = stco === undefined ? uint64(chunks, 8 + 8 * chunk) : uint32(chunks, 8 + 4 * chunk);
      for (let index = 0; index < perChunk && sample < count; index++) {
        positions[sample] = position;
        position += sizes[sample++]!;
      }
    }
  }
  if (sample !== count) throw new OwnRangeError(`chunks of ${sample} samples for ${count}`);
  return positions;
}

/** Marks the sync samples. Without the table every sample is a sync sample. */
function readSyncs(stss: Bytes | undefined, count: number): Uint8Array {
  const syncs = new OwnBytes(count);
  const marked = stss === undefined ? count : uint32(stss, 4);
  for (let entry = 0; entry < marked; entry++) syncs[stss === undefined ? entry : uint32(stss, 8 + 4 * entry) - 1] = 1;
  return syncs;
}
