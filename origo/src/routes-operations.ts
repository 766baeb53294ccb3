/** Operations: what those who run Origo ask of it. */
import { z } from "zod";
import { endpoint, Refusal, type Endpoint } from "./http";
import type { Registry } from "./registry";
import type { Store } from "./store";

export interface OperationsOptions {
  registry: Registry;
  store: Store;
  nowMs: () => number;
  /** True once shutdown began. */
  closing: () => boolean;
}

const Health = z.object({ status: z.literal("ok"), proxies: z.number().int() }).strict();

export const operationsEndpoints = ({ registry, store, nowMs, closing }: OperationsOptions): Endpoint[] => [
  endpoint({
    method: "get", path: "/healthz", access: "public", summary: "Whether this process serves", answer: Health,
    handle: async () => {
      if (closing()) throw new Refusal(503, { kind: "closing", message: "Origo is shutting down" });
      await store.check();
      return { status: "ok" as const, proxies: registry.fleet(nowMs()).length };
    },
  }),
];
