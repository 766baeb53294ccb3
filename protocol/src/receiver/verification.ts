/**
 * Verification: solves one generation, checks its digest, and finds the proxies that sent false packets. While nothing
 * is wrong, all proxies' packets are solved together. Once the bytes turn out false, the generation is disputed: each
 * proxy's packets are solved alone, and for each proxy the packets of all others. The first solution with the right
 * digest gives the bytes, and every kept packet is compared with them. It knows no clock and no other generation.
 * Rules: docs/spec/protocol.md §9.
 */
import type { Codec } from "../codec";
import type { Coding } from "../types";

/** Makes symbols from packets. `rank` counts the degrees of freedom received. */
export interface Solver {
  readonly rank: number;
  /** True when the packet raised the rank. */
  add(coding: Coding, payload: Uint8Array): boolean;
  has(symbolIndex: number): boolean;
  /** Returns `count` symbols from `firstIndex` on. They must be determined. */
  read(firstIndex: number, count: number): Uint8Array;
  free(): void;
}

/** A packet that is kept until the bytes of its generation are known to be true. */
export interface Packet {
  readonly proxyIndex: number;
  readonly coding: Coding;
  readonly payload: Uint8Array;
}

export interface GenerationOptions {
  codec: Codec;
  symbolCount: number;
  symbolBytes: number;
  /** The bytes of the generation without padding. */
  byteCount: number;
  makeSolver(): Solver;
  /**
   * Checks the bytes of a generation from `offset` on. Undefined: every generation is accepted, and no packet is kept.
   */
  isTrue: ((bytes: Uint8Array, offset: number) => boolean) | undefined;
  /** So many bytes can be checked alone, whole symbols. Undefined: `isTrue` takes whole generations only. */
  partBytes?: number | undefined;
  /** Whether `isTrue` can tell yet. Until it can, solved bytes wait for `recheck`. */
  isKnown?: () => boolean;
}

export class OpenGeneration {
  /** Undefined until all bytes are known. Then the bytes that `takeReadable` has not returned. */
  bytes: Uint8Array | undefined;
  /** All bytes, once they have been checked. */
  checkedBytes: Uint8Array | undefined;
  /** Proxies that are proven to have sent a false packet of this generation. */
  readonly liars = new Set<number>();
  /** Packets that the true bytes have shown to be false, one of each proxy. */
  readonly falsePackets: Packet[] = [];
  /** Counts how often degrees of freedom were given up that a proxy may have been told of. */
  takenBack = 0;
  /** Undefined while disputed. */
  #together: Solver | undefined;
  readonly #alone = new Map<number, Solver>();
  /** While disputed, by proxy: the others' packets, until they turn out false too. */
  readonly #without = new Map<number, Solver>();
  #packets: Packet[] = [];
  /** Packets of proxies whose own solution was false. At least one of each such proxy's packets is. */
  readonly #suspects: Packet[] = [];
  /** This many symbols from the first one on can be read, and `taken` of them were returned. */
  #readable = 0;
  #taken = 0;
  /** How many of them the present packets have shown to be true. */
  #proven = 0;
  /** The next part that can be read is false. */
  #isStained = false;

  readonly #options: GenerationOptions;

  constructor(options: GenerationOptions) {
    this.#options = options;

    this.#together = options.makeSolver();
  }

  get disputed(): boolean {
    return this.#together === undefined;
  }

  /** The degrees of freedom of all packets together or, while disputed, the most that one proxy gave. */
  get rank(): number {
    return this.#together?.rank ?? Math.max(0, ...[...this.#alone.values()].map((solver) => solver.rank));
  }

  rankFor(proxyIndex: number): number {
    return (this.#together ?? this.#alone.get(proxyIndex))?.rank ?? 0;
  }

  /**
   * While disputed: how many packets this proxy must give so that the generation can be solved without any one of the
   * others, even if another one brings nothing. Once such solutions have failed, as many as it takes alone.
   */
  neededFrom(proxyIndex: number): number {
    const { symbolCount } = this.#options;
    const alone = symbolCount - this.rankFor(proxyIndex);
    const ranks = [...this.#without].flatMap(([other, { rank }]) => (other === proxyIndex ? [] : rank));
    if (ranks.length < 2) return alone;
    return Math.min(alone, Math.ceil((symbolCount - Math.min(...ranks)) / (this.#alone.size - 2)));
  }

  /**
   * The next symbols that can be delivered although others are missing. Each is returned once. Returns undefined for
   * fewer than `leastCount` symbols. If digests must be checked, it returns only whole parts that are true.
   */
  takeReadable(leastCount: number): Uint8Array | undefined {
    const { isTrue, isKnown, partBytes, symbolBytes, symbolCount } = this.#options;
    const step = isTrue ? (partBytes ?? NaN) / symbolBytes : 1;
    if (!this.#together || this.#isStained || step % 1 !== 0 || isKnown?.() === false) return undefined;
    while (this.#readable < symbolCount && this.#together.has(this.#readable)) this.#readable++;
    const first = this.#taken;
    const count = this.#readable - first - ((this.#readable - first) % step);
    if (count < Math.max(leastCount, 1)) return undefined;
    const bytes = this.#together.read(first, count);
    const isPartTrue = (at: number): boolean =>
      !isTrue || isTrue(bytes.subarray(at, at + step * symbolBytes), first * symbolBytes + at);
    let end = 0;
    while (end < bytes.length && !this.#isStained) {
      if (isPartTrue(end)) end += step * symbolBytes;
      else this.#isStained = true;
    }
    if (this.#proven === first) this.#proven += end / symbolBytes;
    this.#taken = first + end / symbolBytes;
    return end === 0 ? undefined : bytes.subarray(0, end);
  }

  hasFor(proxyIndex: number, symbolIndex: number): boolean {
    return (this.#together ?? this.#alone.get(proxyIndex))?.has(symbolIndex) ?? false;
  }

  /** True when the packet was innovative. It may have set `bytes` or added to `liars`. */
  add(proxyIndex: number, coding: Coding, payload: Uint8Array): boolean {
    const solver = this.#together ?? this.#aloneOf(proxyIndex);
    if (!solver.add(coding, payload)) return false;
    if (this.#options.isTrue) this.#packets.push({ proxyIndex, coding, payload: payload.slice() });
    if (solver.rank === this.#options.symbolCount) this.#solved(solver, proxyIndex);
    if (this.disputed) this.#addToOthers(proxyIndex, coding, payload);
    return true;
  }

  /**
   * Forgets this proxy's packets and solves the others' packets together again. Returns the number of dropped packets.
   */
  exclude(proxyIndex: number): number {
    const kept = this.#packets.filter((packet) => packet.proxyIndex !== proxyIndex);
    const dropped = this.#packets.length - kept.length;
    if (this.liars.has(proxyIndex) && !this.bytes)
      this.#suspects.push(...this.#packets.filter((packet) => packet.proxyIndex === proxyIndex));
    this.liars.delete(proxyIndex);
    if (dropped === 0 || this.bytes) return dropped;
    this.takenBack++;
    this.#packets = kept;
    this.#freeSolvers();
    this.#readable = this.#taken;
    this.#proven = 0;
    this.#isStained = false;
    const together = (this.#together = this.#options.makeSolver());
    for (const { coding, payload } of kept) {
      if (together.rank < this.#options.symbolCount) together.add(coding, payload);
    }
    if (together.rank === this.#options.symbolCount) this.#solved(together, proxyIndex);
    return dropped;
  }

  /** The digest has become known. Checks the bytes that wait for it. */
  recheck(): void {
    if (this.#together?.rank === this.#options.symbolCount && !this.bytes) this.#solved(this.#together, -1);
  }

  free(): void {
    this.#freeSolvers();
    this.#packets.length = this.#suspects.length = 0;
  }

  #solved(solver: Solver, proxyIndex: number): void {
    const { byteCount, symbolCount, symbolBytes, isTrue, isKnown } = this.#options;
    if (isKnown?.() === false) return;
    // A false packet shows itself only in all bytes, also in those that were taken from other packets.
    const first = isTrue ? 0 : this.#taken;
    const bytes = solver.read(first, symbolCount - first).subarray(0, byteCount - first * symbolBytes);
    const proven = solver === this.#together ? this.#proven * symbolBytes : 0;
    if (!isTrue) this.bytes = bytes;
    else if (isTrue(bytes.subarray(proven), proven)) this.#settle(bytes);
    else if (solver === this.#together) this.#dispute();
    else if (solver === this.#alone.get(proxyIndex)) this.liars.add(proxyIndex);
    else {
      solver.free();
      this.#without.delete(proxyIndex);
    }
  }

  #dispute(): void {
    this.takenBack++;
    this.#freeSolvers();
    const proxies = new Set(this.#packets.map(({ proxyIndex }) => proxyIndex));
    // Of two proxies, all but one are one alone.
    if (proxies.size > 2) for (const proxyIndex of proxies) this.#without.set(proxyIndex, this.#options.makeSolver());
    for (const { proxyIndex, coding, payload } of this.#packets) {
      const solver = this.#aloneOf(proxyIndex);
      if (!this.bytes && solver.add(coding, payload) && solver.rank === this.#options.symbolCount)
        this.#solved(solver, proxyIndex);
      this.#addToOthers(proxyIndex, coding, payload);
    }
  }

  /** Adds a packet of this proxy to the solutions without one of the others. */
  #addToOthers(proxyIndex: number, coding: Coding, payload: Uint8Array): void {
    for (const [other, solver] of this.#without) {
      if (this.bytes || other === proxyIndex) continue;
      if (solver.add(coding, payload) && solver.rank === this.#options.symbolCount) this.#solved(solver, other);
    }
  }

  /** The true bytes show which of the kept packets were false. None can be false when all were solved together. */
  #settle(bytes: Uint8Array): void {
    this.checkedBytes = bytes;
    this.bytes = bytes.subarray(this.#taken * this.#options.symbolBytes);
    const open = [...this.#suspects, ...(this.disputed ? this.#packets : [])];
    if (open.length === 0) return;
    const { codec, symbolCount, symbolBytes } = this.#options;
    const padded = new Uint8Array(symbolCount * symbolBytes);
    padded.set(bytes);
    const encoder = codec.createEncoder(symbolCount, symbolBytes);
    encoder.setSymbols(0, padded);
    const expected = new Uint8Array(symbolBytes);
    for (const packet of open) {
      const { proxyIndex, coding, payload } = packet;
      if (coding.kind === "systematic")
        expected.set(padded.subarray(coding.symbolIndex * symbolBytes, (coding.symbolIndex + 1) * symbolBytes));
      else if (coding.kind === "seed") encoder.encodeSeeds(Uint32Array.of(coding.seed), expected);
      else encoder.encodeVector(coding.coefficients, expected);
      if (sameBytes(expected, payload)) continue;
      if (!this.#suspects.includes(packet)) this.liars.add(proxyIndex);
      if (!this.falsePackets.some((other) => other.proxyIndex === proxyIndex)) this.falsePackets.push(packet);
    }
    encoder.free();
  }

  #aloneOf(proxyIndex: number): Solver {
    const known = this.#alone.get(proxyIndex);
    if (known) return known;
    const made = this.#options.makeSolver();
    this.#alone.set(proxyIndex, made);
    return made;
  }

  #freeSolvers(): void {
    this.#together?.free();
    this.#together = undefined;
    for (const solvers of [this.#alone, this.#without]) {
      for (const solver of solvers.values()) solver.free();
      solvers.clear();
    }
  }
}

export function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, i) => byte === b[i]);
}
