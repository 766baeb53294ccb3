/** Operations: what those who run Origo ask of it. */
import { z } from "zod";
import { endpoint, Refusal, type Endpoint } from "./http";
import type { Registry } from "./registry";
import type { Telemetry } from "./telemetry";

export interface OperationsOptions {
  registry: Registry;
  store: { check(): Promise<void> };
  telemetry: Telemetry;
  nowMs: () => number;
  /** True once shutdown began. */
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
      summary: "Whether this process serves",
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
      summary: "Whether this process should be given requests: it is open and its database answers",
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
      summary: "Metrics for Prometheus",
      answer: telemetry.contentType,
      handle: () => telemetry.text(),
    }),
  ];
};
