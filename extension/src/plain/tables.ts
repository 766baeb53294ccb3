/** Tables: reads the samples of a track from its sample tables (ISO/IEC 14496-12 §8.6, §8.7). Pure. */
import { view, type Box } from "./boxes";

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

export class Tables {
  readonly count: number;
  readonly #times: Float64Array;
  readonly #durations: Uint32Array;
  readonly #offsets: Int32Array;
  readonly #sizes: Uint32Array;
  readonly #positions: Float64Array;
  readonly #syncs: Uint8Array;

  /**
   * The edit list subtracts `shift` from every presentation time. Throws RangeError if the tables contradict each
   * other.
   */
  constructor(stbl: readonly Box[], shift: number) {
    const find = (type: string): DataView<ArrayBuffer> | undefined => {
      const found = stbl.find((box) => box.type === type);
      return found && view(found.body);
    };
    this.#sizes = readSizes(find("stsz"));
    this.count = this.#sizes.length;
    this.#durations = Uint32Array.from(expand(find("stts"), this.count));
    this.#times = new Float64Array(this.count + 1);
    for (let index = 0; index < this.count; index++)
      this.#times[index + 1] = (this.#times[index] ?? 0) + (this.#durations[index] ?? 0);
    const composition = find("ctts");
    this.#offsets =
      composition === undefined ? new Int32Array(this.count) : Int32Array.from(expand(composition, this.count));
    for (let index = 0; index < this.count; index++) this.#offsets[index] = (this.#offsets[index] ?? 0) - shift;
    this.#positions = readPositions(find("stco"), find("co64"), find("stsc"), this.#sizes);
    this.#syncs = readSyncs(find("stss"), this.count);
  }

  at(index: number): Sample {
    return {
      decodeTime: this.#times[index] ?? 0,
      offsetTime: this.#offsets[index] ?? 0,
      duration: this.#durations[index] ?? 0,
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
    let [low, high] = [0, this.count];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#times[middle] ?? 0) < time) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

function readSizes(stsz: DataView | undefined): Uint32Array {
  if (stsz === undefined) throw new RangeError("no sample sizes");
  const [same, count] = [stsz.getUint32(4), stsz.getUint32(8)];
  if (count > SAMPLES_MAX) throw new RangeError(`${count} samples`);
  return Uint32Array.from({ length: count }, (_, index) => (same === 0 ? stsz.getUint32(12 + 4 * index) : same));
}

/** Expands the runs of (count, value) in `stts` and `ctts`. */
function expand(table: DataView | undefined, count: number): Float64Array {
  const values = new Float64Array(count);
  const runCount = table?.getUint32(4) ?? 0;
  let at = 0;
  for (let run = 0; run < runCount && table !== undefined; run++) {
    const until = at + table.getUint32(8 + 8 * run);
    values.fill(table.getInt32(12 + 8 * run), at, Math.min(until, count));
    at = until;
  }
  if (at !== count) throw new RangeError(`a table of ${at} samples for ${count}`);
  return values;
}

function readPositions(
  stco: DataView | undefined,
  co64: DataView | undefined,
  stsc: DataView | undefined,
  sizes: Uint32Array,
): Float64Array {
  const chunks = stco ?? co64;
  if (chunks === undefined || stsc === undefined) throw new RangeError("no chunks");
  const chunkCount = chunks.getUint32(4);
  const runCount = stsc.getUint32(4);
  const positions = new Float64Array(sizes.length);
  let sample = 0;
  for (let run = 0; run < runCount; run++) {
    const next = run + 1 < runCount ? stsc.getUint32(8 + 12 * (run + 1)) - 1 : chunkCount;
    const perChunk = stsc.getUint32(12 + 12 * run);
    for (let chunk = stsc.getUint32(8 + 12 * run) - 1; chunk < next && sample < sizes.length; chunk++) {
      let position = stco === undefined ? Number(chunks.getBigUint64(8 + 8 * chunk)) : chunks.getUint32(8 + 4 * chunk);
      for (let index = 0; index < perChunk && sample < sizes.length; index++) {
        positions[sample] = position;
        position += sizes[sample++] ?? 0;
      }
    }
  }
  if (sample !== sizes.length) throw new RangeError(`chunks of ${sample} samples for ${sizes.length}`);
  return positions;
}

/** Marks the sync samples. Without the table every sample is a sync sample. */
function readSyncs(stss: DataView | undefined, count: number): Uint8Array {
  const syncs = new Uint8Array(count);
  if (stss === undefined) return syncs.fill(1);
  for (let entry = 0; entry < stss.getUint32(4); entry++) syncs[stss.getUint32(8 + 4 * entry) - 1] = 1;
  return syncs;
}
