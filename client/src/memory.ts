/** What the client remembers of its proxies from the last downloads: rate, round trip and loss. In memory only. */
import type { KnownPath } from "@tributary/protocol";

export class PathMemory {
  private readonly byProxy = new Map<string, { path: KnownPath; atMs: number }>();

  /** Older than `ageMs` it is as good as none. */
  constructor(private readonly ageMs: () => number) {}

  note(proxyId: string, path: KnownPath, nowMs: number): void {
    this.byProxy.set(proxyId, { path, atMs: nowMs });
  }

  of(proxyId: string, nowMs: number): KnownPath | undefined {
    const known = this.byProxy.get(proxyId);
    if (known && nowMs - known.atMs <= this.ageMs()) return known.path;
    this.byProxy.delete(proxyId);
    return undefined;
  }
}
