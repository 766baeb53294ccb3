/**
 * Telemetry: metrics for Prometheus and structured log lines. They never contain an address, a query string or the
 * variable part of a path: requests are counted by route.
 */
import pino, { type Logger } from "pino";
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry as Metrics } from "prom-client";
import type { RequestHandler } from "express";
import type { FleetProxy } from "@tributary/contract/schema";

export interface TelemetryOptions {
  fleet: () => readonly FleetProxy[];
  /** The size of the database on disk, or undefined when it is not known. */
  storageBytes: () => Promise<number | undefined>;
}

const STATES = ["live", "draining", "disabled"] as const;
const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

export class Telemetry {
  readonly #metrics = new Metrics();
  readonly #requests: Histogram<"route" | "method" | "status">;
  readonly #intake: Counter<"kind" | "result">;

  constructor({ fleet, storageBytes }: TelemetryOptions) {
    const registers = [this.#metrics];
    collectDefaultMetrics({ register: this.#metrics });
    this.#requests = new Histogram({
      name: "origo_http_request_seconds",
      help: "Seconds until a request was answered, by route",
      labelNames: ["route", "method", "status"],
      buckets: SECONDS,
      registers,
    });
    this.#intake = new Counter({
      name: "origo_intake_total",
      help: "Records and error reports taken in",
      labelNames: ["kind", "result"],
      registers,
    });
    new Gauge({
      name: "origo_proxies",
      help: "Live proxies by state",
      labelNames: ["state"],
      registers,
      collect() {
        const proxies = fleet();
        for (const state of STATES) this.set({ state }, proxies.filter((proxy) => proxy.state === state).length);
      },
    });
    new Gauge({
      name: "origo_proxy_sessions",
      help: "Client sessions of all live proxies",
      registers,
      collect() {
        this.set(sumOf(fleet(), (proxy) => proxy.status?.sessions));
      },
    });
    new Gauge({
      name: "origo_proxy_rejected_messages",
      help: "Messages of clients that all live proxies have rejected since they started",
      registers,
      collect() {
        this.set(sumOf(fleet(), (proxy) => proxy.status?.rejectedMessages));
      },
    });
    new Gauge({
      name: "origo_proxy_sent_bytes_per_second",
      help: "Bytes per second that all live proxies send",
      registers,
      collect() {
        this.set(sumOf(fleet(), (proxy) => proxy.sentBytesPerSec));
      },
    });
    new Gauge({
      name: "origo_storage_bytes",
      help: "Size of the database in bytes",
      registers,
      async collect() {
        this.set((await storageBytes()) ?? NaN);
      },
    });
  }

  noteIntake(kind: "record" | "error", accepted: number, duplicate: number): void {
    this.#intake.inc({ kind, result: "accepted" }, accepted);
    this.#intake.inc({ kind, result: "duplicate" }, duplicate);
  }

  /** Measures the time of each request under the name of its route. */
  readonly timing: RequestHandler = (request, response, next) => {
    const startMs = performance.now();
    response.once("finish", () => {
      const route = String((request.route as { path?: unknown } | undefined)?.path ?? "other");
      this.#requests.observe(
        { route, method: request.method, status: String(response.statusCode) },
        (performance.now() - startMs) / 1000,
      );
    });
    next();
  };

  text(): Promise<string> {
    return this.#metrics.metrics();
  }

  get contentType(): string {
    return this.#metrics.contentType;
  }
}

function sumOf(proxies: readonly FleetProxy[], count: (proxy: FleetProxy) => number | null | undefined): number {
  return proxies.reduce((sum, proxy) => sum + (count(proxy) ?? 0), 0);
}

export type Log = Logger;

/** Writes JSON lines to stdout, where the ready line goes too. */
export function makeLog(level: string): Log {
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    pino.destination({ dest: 1, sync: true }),
  );
}
