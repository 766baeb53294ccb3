/**
 * A client that sends a proxy any frame at all, reads what comes, and then falls silent. The proxy's sender must bear
 * it, and must forget the client in the end.
 */
import { Sender, type Codec, type Frame, type RequestFrame } from "@tributary/protocol";
import { contentOf, sourceOf } from "../content";
import type { Random } from "../random";
import { wildFrame } from "./malice";

const REQUEST_ID = 1;
const CHUNK_BYTES = 20_000;
const TIMER_STEP_MS = 0.01;

/** Reports through `wrong` what did not hold. */
export class RogueClient {
  readonly #random: Random;
  readonly #codec: Codec;
  readonly #symbolBytes: number;
  readonly #wrong: (text: string) => void;
  readonly #original = contentOf(CHUNK_BYTES);

  constructor(random: Random, codec: Codec, symbolBytes: number, wrong: (text: string) => void) {
    this.#random = random;
    this.#codec = codec;
    this.#symbolBytes = symbolBytes;
    this.#wrong = wrong;
  }

  play(): void {
    const random = this.#random;
    const mode = (["coded", "coded-mutp", "uncoded-mutp"] as const)[random.u32() % 3]!;
    const request: RequestFrame = {
      type: "request",
      requestId: REQUEST_ID,
      mode,
      url: "http://origin/",
      share: { start: 0, end: 65535, firstGeneration: random.u32() % 4 },
      symbolBytes: this.#symbolBytes,
      generationSize: 1 + (random.u32() % 128),
      windowPackets: 1 + (random.u32() % 300),
      digests: true,
    };
    const sender = new Sender({ request, codec: this.#codec, rng: () => random.u32(), nowMs: 0 });
    const plan = () =>
      sender.handlePlan(
        { status: 200, totalBytes: this.#original.length, headers: {}, serverFetchMs: 0 },
        sourceOf(this.#original, () => this.#original.length),
      );
    if (random.unit() < 0.8) plan();
    let nowMs = 0;
    for (let step = 0; step < 40 && !sender.finished; step++) {
      nowMs += random.unit() * 20;
      const frame: Frame = random.unit() < 0.1 ? request : wildFrame(random, REQUEST_ID, this.#symbolBytes);
      sender.handleFrame(frame, nowMs);
      for (let sent = 0; sent < 20 && sender.pollTransmit(nowMs); sent++);
      if ((sender.pollTimeout() ?? Infinity) <= nowMs) sender.handleTimeout(nowMs);
    }
    for (let fired = 0; !sender.finished && fired < 10_000; fired++) {
      nowMs = Math.max(nowMs + TIMER_STEP_MS, sender.pollTimeout() ?? nowMs);
      sender.handleTimeout(nowMs);
      for (let sent = 0; sent < 1000 && sender.pollTransmit(nowMs); sent++);
    }
    if (!sender.finished) this.#wrong("a sender does not forget a silent client");
    else if (sender.pollTimeout() !== undefined) this.#wrong("a finished sender has a timer");
  }
}
