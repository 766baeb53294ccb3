/** Merge: adds the figures of several transports; Firefox has one per page. Pure. */
import { isCarrying, type LiveFigures, type LiveProxy } from "../shared/runtime";

/** A transport that is silent for longer is gone with its page. */
const SILENT_MS = 2000;

export class Merge {
  readonly #latest = new Map<string, LiveFigures>();

  /** Takes a reading and returns the sum of the latest readings of all live transports. */
  add(reading: LiveFigures): LiveFigures {
    this.#latest.set(reading.transportId, reading);
    for (const [id, { atMs }] of this.#latest) if (reading.atMs - atMs > SILENT_MS) this.#latest.delete(id);
    const all = [...this.#latest.values()];
    type Sum = "downloads" | "active" | "deliveredBytes" | "fallbacks" | "directBytes" | "uncheckedBytes";
    const sum = (key: Sum): number => all.reduce((total, figures) => total + figures[key], 0);
    const troubles = all.flatMap(({ trouble }) => trouble ?? []).sort((a, b) => b.atMs - a.atMs);
    return {
      ...reading,
      proxies: mergeProxies(all.flatMap(({ proxies }) => proxies)),
      downloads: sum("downloads"),
      active: sum("active"),
      deliveredBytes: sum("deliveredBytes"),
      fallbacks: sum("fallbacks"),
      directBytes: sum("directBytes"),
      uncheckedBytes: sum("uncheckedBytes"),
      trouble: troubles[0] ?? null,
      overHttp: all.map(({ overHttp }) => overHttp).find((why) => why !== null) ?? null,
      vouched: all.flatMap(({ vouched }) => vouched),
    };
  }
}

function mergeProxies(proxies: readonly LiveProxy[]): LiveProxy[] {
  const merged = new Map<string, LiveProxy>();
  for (const proxy of proxies) {
    const known = merged.get(proxy.id);
    if (known === undefined) {
      merged.set(proxy.id, { ...proxy });
      continue;
    }
    for (const key of ["bytes", "packets", "innovative", "duplicate", "lies"] as const) known[key] += proxy[key];
    if (!isCarrying(known.state)) known.state = proxy.state;
    known.rttMs = known.rttMs === null ? proxy.rttMs : Math.min(known.rttMs, proxy.rttMs ?? known.rttMs);
  }
  return [...merged.values()];
}
