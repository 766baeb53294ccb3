/** Operations: the endpoints for people who run Origo: health, readiness and metrics. */
import { z } from "zod";
import { endpoint, Refusal, type Endpoint } from "./http";
import type { Registry } from "./registry";
import type { Telemetry } from "./telemetry";

export interface OperationsOptions {
  registry: Registry;
  store: { check(): Promise<void> };
  telemetry: Telemetry;
  nowMs: () => number;
  /** True when the shutdown has begun. */
  closing: () => boolean;
}

const Health = z.object({ status: z.literal("ok"), proxies: z.number().int() }).strict();
const Ready = z.object({ status: z.literal("ready") }).strict();

export const operationsEndpoints = ({ registry, store, telemetry, nowMs, closing }: OperationsOptions): Endpoint[] => {
  const checkOpen = (): void => {
    if (closing()) throw new Refusal(503, { kind: "closing", message: "Origo is shutting down" });
  };
  return [
    endpoint({
      method: "get",
      path: "/healthz",
      access: "public",
      summary: "Tells whether this process is running",
      answer: Health,
      handle: () => {
        checkOpen();
        return { status: "ok" as const, proxies: registry.fleet(nowMs()).length };
      },
    }),
    endpoint({
      method: "get",
      path: "/readyz",
      access: "public",
      summary: "Tells whether this process can take requests, which needs its database",
      answer: Ready,
      handle: async () => {
        checkOpen();
        await store.check();
        return { status: "ready" as const };
      },
    }),
    endpoint({
      method: "get",
      path: "/metrics",
      access: "public",
      summary: "Get metrics for Prometheus",
      answer: telemetry.contentType,
      handle: () => telemetry.text(),
    }),
  ];
};
