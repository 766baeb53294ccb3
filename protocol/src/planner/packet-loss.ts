/**
 * PacketLoss: estimates which packets of one proxy are missing, how many were lost, how far packets overtake each
 * other, and how useful the received packets were. Pure: time arrives as `nowMs`. Rules: protocol.md §8.6 and §8.9.
 */

/** Loss is measured over about this many packets. More would be too old, and fewer would show mostly chance. */
const LOSS_PACKETS = 256;
/** A remembered loss counts as much as this many packets, so that the first real ones soon outweigh it. */
const REMEMBERED_PACKETS = 16;
/** Before its packets show how useful a proxy is, this many are assumed to have been useful. */
const USEFUL_PACKETS_ASSUMED = 8;
/** A proxy with a smaller share of useful packets is useless: an honest one stays near 1. */
const USEFUL_SHARE_MIN = 0.25;
/** Packets are given up once they are later than any reordering seen, by this factor. */
const REORDER_MARGIN = 1.5;

export class PacketLoss {
  /** Sequences that others have overtaken and that are not given up yet, each with the time when that was seen. */
  readonly gaps = new Map<number, number>();
  received = 0;
  lost = 0;
  /** Packets came up to this long after later ones, with a margin. */
  reorderMs = 1;
  #judged = 0;
  #useless = 0;

  constructor(rememberedLoss?: number) {
    if (rememberedLoss === undefined) return;
    this.lost = rememberedLoss * REMEMBERED_PACKETS;
    this.received = REMEMBERED_PACKETS - this.lost;
  }

  /** The lost share of all packets; call it only once some are counted. */
  get share(): number {
    return this.lost / (this.lost + this.received);
  }

  /**
   * The share of packets that were useful while their generation needed something, above 0. It is close to 1 unless the
   * proxy is malicious.
   */
  get usefulShare(): number {
    return 1 - this.#useless / (this.#judged + USEFUL_PACKETS_ASSUMED);
  }

  /** The proxy sends so few useful packets that nothing is expected of it. */
  get isUseless(): boolean {
    return this.usefulShare < USEFUL_SHARE_MIN;
  }

  /** Packets from `fromSequence` to before `sequence` were overtaken. */
  handleOvertaken(fromSequence: number, sequence: number, nowMs: number): void {
    for (let missed = fromSequence; missed < sequence; missed++) this.gaps.set(missed, nowMs);
  }

  /** A packet came that others had overtaken. Returns false if it had come before or was given up. */
  handleLate(sequence: number, nowMs: number): boolean {
    const missedMs = this.gaps.get(sequence);
    if (missedMs === undefined) return false;
    this.reorderMs = Math.max(this.reorderMs, REORDER_MARGIN * (nowMs - missedMs));
    this.gaps.delete(sequence);
    return true;
  }

  /** Call it once for each sequence: a repeated packet is never useful. */
  judge(useful: boolean): void {
    this.#judged++;
    if (!useful) this.#useless++;
  }

  /** Gives up gaps that are older than any reordering seen, and lets old counts fade. */
  settle(nowMs: number): void {
    for (const [sequence, missedMs] of this.gaps) {
      if (nowMs - missedMs <= this.reorderMs) continue;
      this.gaps.delete(sequence);
      this.lost++;
    }
    if (this.lost + this.received <= LOSS_PACKETS) return;
    this.lost /= 2;
    this.received /= 2;
    this.#judged /= 2;
    this.#useless /= 2;
  }

  /** The sender at the other end is a new one, whose sequence starts at 0. The counts stay. */
  restart(): void {
    this.gaps.clear();
  }
}
