/**
 * A running 64-bit hash of every event on every link, with its exact time. It consists of two FNV-1a hashes on 32-bit
 * words with different primes. Two runs with the same hash had the same events. The events themselves are not kept.
 */
export const LINK_EVENTS = ["sent", "dropped", "lost", "delivered"] as const;
export type LinkEvent = (typeof LINK_EVENTS)[number];

const time = new Float64Array(1);
const words = new Uint32Array(time.buffer);

export class EventLog {
  events = 0;
  #low = 0x811c9dc5;
  #high = 0xcbf29ce4;

  /** `link` identifies link and direction. `word` tells this packet from others. */
  add(nowMs: number, event: number, link: number, packetBytes: number, word: number): void {
    this.events++;
    time[0] = nowMs;
    this.#fold(words[0]!);
    this.#fold(words[1]!);
    this.#fold((event << 28) ^ (link << 16) ^ packetBytes);
    this.#fold(word);
  }

  /** 16 hexadecimal digits. */
  get hash(): string {
    return [this.#high, this.#low].map((word) => (word >>> 0).toString(16).padStart(8, "0")).join("");
  }

  #fold(word: number): void {
    this.#low = Math.imul(this.#low ^ word, 0x01000193);
    this.#high = Math.imul(this.#high ^ word ^ (this.#low >>> 15), 0x85ebca6b);
  }
}
