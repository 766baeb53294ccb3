/** Read metrics: what the proxy reads of sites' bodies, as counters for Prometheus, beside other metrics. */
import { Counter, Registry } from "prom-client";

export interface ReadCounts {
  /** Body bytes from origins, and from and to other proxies. */
  originBytes: number;
  sharing?: { fromPeersBytes: number; toPeersBytes: number } | undefined;
}

export interface MetricsText {
  readonly contentType: string;
  text(): Promise<string>;
}

export function withReads(others: MetricsText, counts: () => ReadCounts): MetricsText {
  const registry = new Registry();
  new Counter({
    name: "tributary_body_bytes_total",
    help: "Bytes of bodies by where they came from or went: origin, from_peers, to_peers",
    labelNames: ["way"],
    registers: [registry],
    collect() {
      const { originBytes, sharing } = counts();
      this.reset();
      this.inc({ way: "origin" }, originBytes);
      this.inc({ way: "from_peers" }, sharing?.fromPeersBytes ?? 0);
      this.inc({ way: "to_peers" }, sharing?.toPeersBytes ?? 0);
    },
  });
  const text = async () => `${await others.text()}${await registry.metrics()}`;
  return { contentType: others.contentType, text };
}
