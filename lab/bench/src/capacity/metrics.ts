/** Reads a proxy's metrics (the text format of Prometheus), and what happened between two readings. */

export type Metrics = ReadonlyMap<string, number>;

/** By name with labels, as the text has them. */
export function parseMetrics(text: string): Metrics {
  return new Map(
    text
      .split("\n")
      .filter((line) => line !== "" && !line.startsWith("#"))
      .map((line): [string, number] => {
        const at = line.lastIndexOf(" ");
        return [line.slice(0, at), Number(line.slice(at + 1))];
      }),
  );
}

/** Seconds by stage of a coding task, in all, between two readings. Empty if the proxy times no stages. */
export function stageSeconds(before: Metrics, after: Metrics): Record<string, number> {
  const seconds: Record<string, number> = {};
  for (const [name, value] of after) {
    const stage = /^tributary_coder_stage_seconds_sum\{stage="(\w+)"\}$/.exec(name)?.[1];
    if (stage !== undefined) seconds[stage] = value - (before.get(name) ?? 0);
  }
  return seconds;
}

/**
 * A quantile of the histogram `name` between two readings, linear within a bucket as in Prometheus. NaN if nothing was
 * counted.
 */
export function histogramQuantile(before: Metrics, after: Metrics, name: string, share: number): number {
  const buckets = [...after]
    .flatMap(([key, value]) => {
      const limit = key.startsWith(`${name}_bucket{`) ? /le="([^"]+)"/.exec(key)?.[1] : undefined;
      if (limit === undefined) return [];
      return [{ limit: limit === "+Inf" ? Infinity : Number(limit), count: value - (before.get(key) ?? 0) }];
    })
    .sort((a, b) => a.limit - b.limit);
  const wanted = share * (buckets.at(-1)?.count ?? 0);
  const at = buckets.findIndex(({ count }) => count >= wanted && count > 0);
  if (at < 0) return NaN;
  const [low, high] = [buckets[at - 1] ?? { limit: 0, count: 0 }, buckets[at]!];
  if (high.limit === Infinity) return low.limit;
  return low.limit + ((high.limit - low.limit) * (wanted - low.count)) / (high.count - low.count);
}
