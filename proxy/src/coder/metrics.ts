/**
 * CoderMetrics: the times of coding by stage and the response times, as histograms for Prometheus, and short numbers of
 * them for the proxy's reports. No label names a client, an address or a URL.
 */
import { Counter, Gauge, Histogram, Registry } from "prom-client";

/** The stages of a coded packet, from the request for it until it leaves. */
export const STAGES = ["queueing", "input", "coding", "sending"] as const;
export type Stage = (typeof STAGES)[number];

/** From 10 µs to 10 s, three in each decade. */
const SECONDS = [1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1].flatMap((decade) => [decade, 2.2 * decade, 4.6 * decade]).concat(10);

/** What is read when someone asks. */
export interface CoderState {
  coders: readonly string[];
  waitingTasks: number;
  bytes: number;
  inlineSymbols: number;
  serviceSymbols: number;
  sentSymbols: number;
  evictedGenerations: number;
  doneTasks: number;
  shedTasks: number;
  cancelledTasks: number;
  failedTasks: number;
  lostCoders: number;
}

export class CoderMetrics {
  readonly #registry = new Registry();
  readonly #stages: Histogram<"stage">;
  readonly #response: Histogram;
  /** How often each stage was timed, and its milliseconds in all. */
  readonly #sums = Object.fromEntries(STAGES.map((stage) => [stage, { count: 0, ms: 0 }])) as Record<
    Stage,
    { count: number; ms: number }
  >;

  constructor(state: () => CoderState) {
    const registers = [this.#registry];
    this.#stages = new Histogram({
      name: "tributary_coder_stage_seconds",
      help: "Time of coding tasks by stage: waiting in the queue, copying the source, coding, waiting to be sent",
      labelNames: ["stage"],
      buckets: SECONDS,
      registers,
    });
    this.#response = new Histogram({
      name: "tributary_response_seconds",
      help: "Time from a request of a session to its first data packet",
      buckets: SECONDS,
      registers,
    });
    const gauge = (name: string, help: string, value: (now: CoderState) => number): void =>
      void new Gauge({ name, help, registers, collect: set(value) });
    function set(value: (now: CoderState) => number) {
      return function (this: Gauge): void {
        this.set(value(state()));
      };
    }
    gauge("tributary_coder_waiting_tasks", "Coding tasks that wait", ({ waitingTasks }) => waitingTasks);
    gauge("tributary_coder_bytes", "Memory of generations and ready symbols", ({ bytes }) => bytes);
    gauge("tributary_coders", "Coders of the service", ({ coders }) => coders.length);
    const counted = (name: string, help: string, label: string, values: (now: CoderState) => Record<string, number>) =>
      void new Counter({
        name,
        help,
        labelNames: [label],
        registers,
        collect() {
          this.reset();
          for (const [key, value] of Object.entries(values(state()))) this.inc({ [label]: key }, value);
        },
      });
    counted("tributary_coder_tasks_total", "Coding tasks by outcome", "outcome", (now) => ({
      done: now.doneTasks,
      shed: now.shedTasks,
      cancelled: now.cancelledTasks,
      failed: now.failedTasks,
    }));
    counted(
      "tributary_coder_symbols_total",
      "Coded symbols made on the event loop, made by coders, sent",
      "what",
      (now) => ({ inline: now.inlineSymbols, service: now.serviceSymbols, sent: now.sentSymbols }),
    );
    counted(
      "tributary_coder_lost_total",
      "Coders that were lost, and generations that left for want of memory",
      "what",
      (now) => ({ coders: now.lostCoders, generations: now.evictedGenerations }),
    );
  }

  noteStage(stage: Stage, ms: number): void {
    const sum = this.#sums[stage];
    sum.count++;
    sum.ms += ms;
    this.#stages.observe({ stage }, ms / 1000);
  }

  noteResponse(ms: number): void {
    this.#response.observe(ms / 1000);
  }

  /** The mean of each stage that was timed, in milliseconds. */
  meanMs(): Partial<Record<Stage, number>> {
    const timed = STAGES.filter((stage) => this.#sums[stage].count > 0);
    return Object.fromEntries(timed.map((stage) => [stage, this.#sums[stage].ms / this.#sums[stage].count]));
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  text(): Promise<string> {
    return this.#registry.metrics();
  }
}
