/**
 * ProxyCoder: how this proxy makes coded packets. It opens the coders that the operator chose, measures what coding
 * costs, and says in one log line what it chose. Until then, and where nothing else is cheaper, packets are coded on
 * the event loop (ADR 0007). It gives each sender its source of coded symbols.
 */
import {
  CoderService,
  cpuCoder,
  createCoderPool,
  only,
  openGpuCoder,
  slowedCoder,
  type Coder,
  type CoderStage,
} from "@tributary/native-codec";
import { EncoderPool, type Codec, type Rng, type SupplyFor } from "@tributary/protocol";
import type { ProxyStatus } from "@tributary/contract/schema";
import { availableParallelism } from "node:os";
import type { CoderSetting } from "../config";
import type { Limits } from "../control";
import type { Log } from "../log";
import { Costs } from "./costs";
import { measureCosts, measureRate } from "./measure";
import { CoderMetrics, type CoderState } from "./metrics";
import { SymbolRings } from "./rings";
import { withTimedEncoders } from "./timed-encoders";

export interface ProxyCoderOptions {
  codec: Codec;
  setting: CoderSetting;
  /** The GPU's driver library, or `stand-in` for a slowed CPU coder in its place. */
  device: string;
  limits: CoderLimits;
  rng: Rng;
  log: Log;
}

type CoderLimits = Pick<Limits, "coderBytes" | "coderTasksMax" | "codesAnew">;

/** How often the stand-in does its work, so that it is slower than a CPU coder. */
const STAND_IN_TIMES = 2;
/** A GPU that makes less than this share of what the CPU makes is not worth its memory. */
const GPU_SHARE_MIN = 0.1;

export class ProxyCoder {
  readonly metrics = new CoderMetrics(() => this.state());
  /** For requests whose symbols are coded anew. */
  readonly encoders: EncoderPool;
  readonly #onStage = (stage: CoderStage | "sending", ms: number): void => this.metrics.noteStage(stage, ms);
  readonly #costs = new Costs();
  readonly #rings: SymbolRings;
  #service: CoderService | undefined;
  /** Of a CPU coder. */
  #threads = 1;
  /** Resolves when the coders are chosen. */
  #started: Promise<void> | undefined;
  #limits: CoderLimits;
  #isClosed = false;
  readonly #options: ProxyCoderOptions;

  constructor(options: ProxyCoderOptions) {
    this.#options = options;
    const { codec, limits, rng } = options;
    this.#limits = limits;
    this.encoders = new EncoderPool(withTimedEncoders(codec, this.#onStage));
    this.#rings = new SymbolRings({
      codec,
      rng,
      costs: this.#costs,
      bytesMax: limits.coderBytes,
      onStage: this.#onStage,
    });
    this.setLimits(limits);
  }

  /** Opens the coders, measures for a moment, and then uses what is cheapest. */
  start(): Promise<void> {
    this.#started ??= this.#open();
    return this.#started;
  }

  async #open(): Promise<void> {
    const { codec, setting, log } = this.#options;
    const gpu = this.#openGpu();
    // The event loop has a core, and so has the thread that serves the device.
    this.#threads = Math.max(1, availableParallelism() - (gpu ? 2 : 1));
    const cpu = this.#openCpu();
    const rates: Record<string, number> = {};
    if (setting === "auto" && gpu) {
      for (const coder of [cpu, gpu])
        rates[`${coder.name}MbPerMs`] = Math.round(10 * (await measureRate(codec, coder))) / 10;
    }
    const isWorthIt = setting !== "auto" || rates[`${gpu?.name}MbPerMs`]! >= GPU_SHARE_MIN * rates["cpuMbPerMs"]!;
    const chosen = !gpu || !isWorthIt ? [cpu] : setting === "gpu" ? [gpu, only("decode", cpu)] : [gpu, cpu];
    if (gpu && !chosen.includes(gpu)) await gpu.close();
    this.#service = new CoderService({
      codec,
      coders: chosen,
      reserve: () => this.#openCpu(),
      tasksMax: () => this.#limits.coderTasksMax,
      bytesMax: () => this.#limits.coderBytes,
      onStage: this.#onStage,
      onLost: (coder, reason) => log("coderLost", { coder, reason, remedy: "the other coders go on" }),
    });
    const isAlone = availableParallelism() === 1 && chosen.length === 1;
    await measureCosts(codec, this.#service, this.#costs, isAlone);
    const { handoverMs, inlineMsPerMega } = this.#costs;
    log("coder", {
      setting,
      coders: this.#service.coders.map(({ name }) => name).join(" and "),
      engine: codec.engine,
      threads: this.#threads,
      inlineUsPerMega: Math.round(1000 * inlineMsPerMega!),
      handoverUs: Number.isFinite(handoverMs) ? Math.round(1000 * handoverMs) : null,
      ...rates,
    });
    if (!this.#isClosed) this.#rings.setService(this.#service);
  }

  #openCpu(): Coder {
    return cpuCoder(createCoderPool(this.#options.codec, { threads: this.#threads }));
  }

  #openGpu(): Coder | undefined {
    const { device, codec, setting, log } = this.#options;
    if (setting === "cpu") return undefined;
    if (device === "stand-in")
      return slowedCoder(createCoderPool(codec, { threads: 1, ownThreads: true }), STAND_IN_TIMES);
    const opened = openGpuCoder(codec, device);
    if ("coder" in opened) return opened.coder;
    log("noGpu", { reason: opened.reason, remedy: "the CPU codes" });
    return undefined;
  }

  setLimits(limits: CoderLimits): void {
    this.#limits = limits;
    // Requests from before a change of `codesAnew` go on, with one generation at a time.
    const { coderBytes, codesAnew } = limits;
    this.encoders.setLimit(codesAnew ? coderBytes : 0);
    this.#rings.setLimit(codesAnew ? 0 : coderBytes);
  }

  /** The source of a request's coded symbols. Undefined if they are to be coded anew. `onReady`: there may be more. */
  supplyFor(requestId: number, onReady: () => void): SupplyFor | undefined {
    if (this.#limits.codesAnew) return undefined;
    return (geometry, source) => this.#rings.supplyFor(requestId, geometry, source, onReady);
  }

  state(): CoderState {
    const service = this.#service;
    return {
      coders: service?.coders.map(({ name }) => name) ?? [],
      waitingTasks: service?.waitingTasks ?? 0,
      bytes: this.#rings.bytes + this.encoders.copiedBytes,
      ...this.#rings.counts,
      doneTasks: 0,
      shedTasks: 0,
      cancelledTasks: 0,
      failedTasks: 0,
      lostCoders: 0,
      ...service?.counts,
    };
  }

  /** What Origo gets. */
  report(): NonNullable<ProxyStatus["coder"]> {
    const { coders, waitingTasks, shedTasks, lostCoders, inlineSymbols, serviceSymbols, sentSymbols } = this.state();
    const symbols = { inlineSymbols, serviceSymbols, sentSymbols };
    return { coders: [...coders], waitingTasks, shedTasks, lostCoders, ...symbols, stageMs: this.metrics.meanMs() };
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#rings.close();
    this.encoders.free();
    await this.#started?.catch(() => undefined);
    await this.#service?.close();
  }
}
