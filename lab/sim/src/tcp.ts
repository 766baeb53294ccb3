/**
 * The sender of a persistent TCP connection, segment by segment. Acknowledgements name everything that has arrived
 * (SACK). A segment counts as lost once three later ones have arrived. Where segments overtake each other, it counts as
 * lost once it is overdue (RACK, RFC 8985). It also counts as lost when nothing arrived for two round trips (tail loss
 * probe). There are two responses to loss: `ideal` ignores it and sends whenever its link can take a segment; `cubic`
 * obeys RFC 9438 and starts with the window of a connection that has carried data over the same link (steady state at
 * that loss, RFC 9438 §5). Pure: it knows segments by number and no link.
 */
interface TcpPath {
  response: "ideal" | "cubic";
  rttMs: number;
  /** Mean loss. With the capacity it gives the warm window. */
  loss: number;
  /** Segments that the link and its queue hold. */
  capacitySegments: number;
  /** A connection without history begins with the initial window (RFC 6928) and slow start. */
  isNew?: boolean;
}

const CUBIC_C = 0.4;
const BETA = 0.7;
const DUPLICATES = 3;
const WINDOW_MIN = 2;
const WINDOW_INITIAL = 10;

export class TcpSender {
  /** The segments of the answer that is being sent. `#next` is the first one that was never sent. */
  #first = 0;
  #next = 0;
  #end = 0;
  readonly #sentSegment: number[] = [];
  readonly #sentMs: number[] = [];
  /** 0: in flight. 1: arrived. 2: counted as lost. */
  readonly #state: number[] = [];
  readonly #again: number[] = [];
  readonly #arrived = new Set<number>();
  #firstOpen = 0;
  #open = 0;
  #newest = -1;
  #told = 0;
  #smoothedMs: number;
  #variationMs: number;
  #overtaking = false;
  #window: number;
  #threshold: number;
  #maximum: number;
  #epochMs = 0;
  #recoverySent = -1;
  #silentProbes = 0;
  #probeMs = Infinity;

  readonly #path: TcpPath;

  constructor(path: TcpPath) {
    this.#path = path;

    this.#smoothedMs = path.rttMs;
    this.#variationMs = path.rttMs / 8;
    const steady = steadyWindow(path.loss, path.rttMs);
    this.#window = Math.max(WINDOW_MIN, Math.min(path.capacitySegments, steady));
    if (path.isNew) this.#window = WINDOW_INITIAL;
    this.#threshold = path.isNew ? Infinity : this.#window;
    this.#maximum = this.#window;
  }

  get sentCount(): number {
    return this.#sentSegment.length;
  }
  get overdueMs(): number {
    return this.#open > 0 ? this.#probeMs : Infinity;
  }
  segmentOf(sent: number): number {
    return this.#sentSegment[sent]!;
  }

  /** Begins a new answer. Lost segments of the previous one are not repeated. */
  start(first: number, end: number): void {
    this.stop();
    this.#first = this.#next = first;
    this.#end = end;
  }

  stop(): void {
    this.#first = this.#next = this.#end = 0;
    this.#again.length = 0;
  }

  /** Returns the number of the transmission, or -1 when nothing may be sent. The proxy has segments below `limit`. */
  send(nowMs: number, limit: number): number {
    if (this.#path.response === "cubic" && this.#open >= Math.floor(this.#window)) return -1;
    const segment = this.#pick(limit);
    if (segment < 0) return -1;
    const sent = this.#sentSegment.push(segment) - 1;
    this.#sentMs.push(nowMs);
    this.#state.push(0);
    if (this.#open++ === 0) this.#probeMs = nowMs + this.#probeAfterMs();
    return sent;
  }

  /** Takes an acknowledgement of the first `count` of `arrivals`, which are transmissions in the order of arrival. */
  acknowledge(arrivals: readonly number[], count: number, nowMs: number): void {
    for (; this.#told < count; this.#told++) this.#take(arrivals[this.#told]!, nowMs);
    this.#findLost(nowMs);
  }

  handleTimeout(nowMs: number): void {
    if (nowMs < this.overdueMs) {
      if (this.#overtaking) this.#findLost(nowMs);
      return;
    }
    this.#silentProbes++;
    this.#probeMs = nowMs + this.#probeAfterMs() * 2 ** Math.min(this.#silentProbes, 6);
    for (let sent = this.#firstOpen; sent < this.#state.length; sent++) {
      if (this.#state[sent] === 0 && (this.#silentProbes > 1 || nowMs - this.#sentMs[sent]! >= this.#smoothedMs))
        this.#lose(sent, nowMs);
    }
    if (this.#silentProbes > 1) this.#window = WINDOW_MIN;
  }

  #pick(limit: number): number {
    for (let segment = this.#again.shift(); segment !== undefined; segment = this.#again.shift()) {
      if (!this.#arrived.has(segment)) return segment;
    }
    return this.#next < Math.min(this.#end, limit) ? this.#next++ : -1;
  }

  #take(sent: number, nowMs: number): void {
    if (sent < this.#newest) this.#overtaking = true;
    this.#newest = Math.max(this.#newest, sent);
    this.#arrived.add(this.#sentSegment[sent]!);
    this.#silentProbes = 0;
    this.#probeMs = nowMs + this.#probeAfterMs();
    if (this.#state[sent] !== 0) return;
    this.#state[sent] = 1;
    this.#open--;
    const sampleMs = nowMs - this.#sentMs[sent]!;
    this.#variationMs += (Math.abs(sampleMs - this.#smoothedMs) - this.#variationMs) / 4;
    this.#smoothedMs += (sampleMs - this.#smoothedMs) / 8;
    this.#widen(nowMs);
  }

  #findLost(nowMs: number): void {
    while (this.#firstOpen < this.#state.length && this.#state[this.#firstOpen] !== 0) this.#firstOpen++;
    const overdueMs = this.#smoothedMs + Math.max(this.#smoothedMs / 4, 4 * this.#variationMs);
    const upTo = this.#newest - (this.#overtaking ? 1 : DUPLICATES);
    for (let sent = this.#firstOpen; sent <= upTo; sent++) {
      if (this.#state[sent] === 0 && (!this.#overtaking || nowMs - this.#sentMs[sent]! > overdueMs))
        this.#lose(sent, nowMs);
    }
  }

  #lose(sent: number, nowMs: number): void {
    this.#state[sent] = 2;
    this.#open--;
    const segment = this.#sentSegment[sent]!;
    if (segment >= this.#first && segment < this.#end) this.#again.push(segment);
    if (sent <= this.#recoverySent) return;
    this.#recoverySent = this.#sentSegment.length - 1;
    this.#maximum = this.#window < this.#maximum ? (this.#window * (1 + BETA)) / 2 : this.#window;
    this.#window = this.#threshold = Math.max(WINDOW_MIN, this.#window * BETA);
    this.#epochMs = nowMs;
  }

  /** RFC 9438 §4.2 to §4.5, with the Reno-friendly region. */
  #widen(nowMs: number): void {
    if (this.#window < this.#threshold) {
      this.#window++;
      return;
    }
    const seconds = (nowMs - this.#epochMs + this.#smoothedMs) / 1000;
    const inflection = Math.cbrt((this.#maximum * (1 - BETA)) / CUBIC_C);
    const cubic = CUBIC_C * (seconds - inflection) ** 3 + this.#maximum;
    const reno = this.#maximum * BETA + ((3 * (1 - BETA)) / (1 + BETA)) * ((nowMs - this.#epochMs) / this.#smoothedMs);
    const target = Math.min(Math.max(cubic, reno), 1.5 * this.#window);
    if (target > this.#window) this.#window += (target - this.#window) / this.#window;
  }

  #probeAfterMs(): number {
    return Math.max(2 * this.#smoothedMs, this.#smoothedMs + 4 * this.#variationMs, 10);
  }
}

/** The mean window in segments: the larger of Cubic's and Reno's at that loss (RFC 9438 §5.1). */
function steadyWindow(loss: number, rttMs: number): number {
  if (loss === 0) return Infinity;
  const cubic = ((CUBIC_C * (3 + BETA)) / (4 * (1 - BETA))) ** 0.25 * (rttMs / 1000) ** 0.75 * loss ** -0.75;
  return Math.max(cubic, Math.sqrt(1.5 / loss));
}
