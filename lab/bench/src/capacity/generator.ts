/**
 * The load generator, as a process: real clients of the protocol without players. An order a line on standard input, an
 * answer a line on standard output. In: the setting as JSON (`Setting`) in the first argument.
 */
import { createInterface } from "node:readline";
import { nodeTransports } from "@tributary/client/node";
import type { ProxyInfo } from "@tributary/client";
import { Random } from "@tributary/lab-sim";
import { loadCodec } from "@tributary/native-codec";
import { loadWasmCodec } from "@tributary/wasm-codec/node";
import { countingCodec } from "./counting-codec";
import { nextArrivalMs, stayMs, Zipf } from "./draws";
import { Tally, Viewer, type CapacityMode, type TallySample } from "./viewer";

export interface Setting {
  proxy: ProxyInfo;
  originUrl: string;
  transport: "webtransport" | "webrtc";
  mode: CapacityMode;
  channels: number;
  zipf: number;
  /** One in this many viewers decodes and compares every byte. */
  verifyEvery: number;
  seed: number;
}

export type Order =
  /** Viewers arrive at `perSec` until there are `viewers`, or leave until there are no more. */
  | { kind: "grow"; viewers: number; perSec: number }
  /** From now on viewers arrive at `perSec` and stay for `stayMs` in the mean. */
  | { kind: "churn"; perSec: number; stayMs: number }
  /** What happened since the last look. */
  | { kind: "look" };

export interface Look extends TallySample {
  viewers: number;
  /** For how long requests without an answer have waited, ms. */
  waitingMs: number[];
}

const TICK_MS = 5;

class Generator {
  readonly #tally = new Tally();
  readonly #viewers = new Set<Viewer>();
  readonly #dirty = new Set<Viewer>();
  readonly #random: Random;
  readonly #zipf: Zipf;
  readonly #real = loadCodec(loadWasmCodec);
  readonly #counting = countingCodec(this.#real);
  #made = 0;
  #opening = 0;

  readonly #setting: Setting;

  constructor(setting: Setting) {
    this.#setting = setting;
    this.#random = new Random(setting.seed);
    this.#zipf = new Zipf(setting.channels, setting.zipf);
    setInterval(() => this.#tick(), TICK_MS);
  }

  /** Only `look` has an answer. */
  async carryOut(order: Order): Promise<Look | null> {
    if (order.kind === "look") return this.#look();
    if (order.kind === "grow") await this.#grow(order.viewers, order.perSec);
    else void this.#churn(order.perSec, order.stayMs);
    return null;
  }

  async #grow(viewers: number, perSec: number): Promise<void> {
    const spare = [...this.#viewers].slice(viewers);
    for (const viewer of spare) this.#end(viewer);
    let dueMs = performance.now();
    for (let count = this.#viewers.size; count < viewers; count++) {
      await sleepUntil((dueMs += nextArrivalMs(this.#random, perSec)));
      void this.#open();
    }
    while (this.#opening > 0) await sleepUntil(performance.now() + 10);
  }

  async #churn(perSec: number, meanStayMs: number): Promise<void> {
    for (let dueMs = performance.now(); ;) {
      await sleepUntil((dueMs += nextArrivalMs(this.#random, perSec)));
      const viewer = await this.#open();
      if (viewer) setTimeout(() => this.#end(viewer), stayMs(this.#random, meanStayMs));
    }
  }

  async #open(): Promise<Viewer | undefined> {
    const { proxy, originUrl, transport: name, mode, verifyEvery } = this.#setting;
    const verifies = this.#made++ % verifyEvery === 0;
    const viewer = new Viewer({
      mode,
      originUrl,
      channel: this.#zipf.draw(this.#random),
      codec: verifies ? this.#real : this.#counting,
      verifies,
      tally: this.#tally,
    });
    const transport = nodeTransports.find((each) => each.name === name)!;
    this.#opening++;
    try {
      const channel = await transport.open({
        proxy,
        session: this.#made,
        sendOffer: (offer) => sendOffer(proxy.url, offer),
        signal: AbortSignal.timeout(30_000),
        onMessage: (bytes) => this.#receive(viewer, bytes),
        onClosed: (reason) => {
          viewer.fail(`session closed: ${reason}`);
          this.#end(viewer);
        },
      });
      this.#viewers.add(viewer);
      viewer.start(channel, performance.now());
      return viewer;
    } catch (error) {
      this.#tally.failures.push(`no session: ${(error as Error).message}`);
      return undefined;
    } finally {
      this.#opening--;
    }
  }

  #end(viewer: Viewer): void {
    this.#viewers.delete(viewer);
    viewer.close();
  }

  /** All messages of one turn are read before any is answered, as in the client's worker. */
  #receive(viewer: Viewer, bytes: Uint8Array): void {
    viewer.handleMessage(bytes, performance.now());
    if (this.#dirty.size === 0) setImmediate(() => this.#pump());
    this.#dirty.add(viewer);
  }

  #pump(): void {
    const nowMs = performance.now();
    for (const viewer of this.#dirty) viewer.pump(nowMs);
    this.#dirty.clear();
  }

  #tick(): void {
    const nowMs = performance.now();
    for (const viewer of this.#viewers) if (viewer.isActive) viewer.handleTimeout(nowMs);
  }

  #look(): Look {
    const nowMs = performance.now();
    const waitingMs = [...this.#viewers].flatMap(({ waitsSinceMs }) =>
      waitsSinceMs === undefined ? [] : [nowMs - waitsSinceMs],
    );
    return { ...this.#tally.take(), viewers: this.#viewers.size, waitingMs };
  }
}

const sleepUntil = (atMs: number): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, Math.max(0, atMs - performance.now())));

/** Brings a WebRTC offer to the proxy, as the client library does. */
async function sendOffer(proxyUrl: string, sdp: string): Promise<string> {
  const response = await fetch(`${proxyUrl}/v1/sessions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ sdp }),
  });
  const answer = (await response.json()) as { sdp?: string };
  if (response.status !== 201 || answer.sdp === undefined) throw new Error(`the proxy answered ${response.status}`);
  return answer.sdp;
}

async function main(): Promise<void> {
  const generator = new Generator(JSON.parse(process.argv[2]!) as Setting);
  for await (const line of createInterface({ input: process.stdin }))
    process.stdout.write(`${JSON.stringify(await generator.carryOut(JSON.parse(line) as Order))}\n`);
  process.exit(0);
}

if (require.main === module) void main();
