/**
 * Convictions: in how many networks clients have shown false packets of each proxy. In memory only: networks are
 * forgotten after a day, and no client is kept. Pure: time arrives as `nowMs`.
 */

const REMEMBERED_MS = 86_400_000;
/** Of one proxy. */
const NETWORKS_MAX = 1000;

export class Convictions {
  /** By proxy: when each network convicted it last. The one that did so longest ago comes first. */
  readonly #networks = new Map<string, Map<string, number>>();

  note(proxyId: string, network: string, nowMs: number): void {
    const networks = this.#networks.get(proxyId) ?? new Map<string, number>();
    this.#networks.set(proxyId, networks);
    networks.delete(network);
    networks.set(network, nowMs);
    for (const [oldest, atMs] of networks) {
      if (networks.size <= NETWORKS_MAX && nowMs - atMs < REMEMBERED_MS) break;
      networks.delete(oldest);
    }
  }

  /** In how many networks clients convicted this proxy. */
  countOf(proxyId: string, nowMs: number): number {
    const times = [...(this.#networks.get(proxyId)?.values() ?? [])];
    return times.filter((atMs) => nowMs - atMs < REMEMBERED_MS).length;
  }

  forget(proxyId: string): void {
    this.#networks.delete(proxyId);
  }
}
