/**
 * Choice: decides which transports to try with a proxy, and in which order. The transport that worked last in this
 * network comes first, because a network passes a kind of traffic or blocks it. Pure: time arrives as `nowMs`.
 */
import type { TransportName } from "@tributary/contract/schema";
import type { ProxyInfo, TransportOption } from "./api";
import type { NetworkMemory } from "./memory";
import type { Transport } from "./platform";

/** The key for the transport that worked last with any proxy. */
const ANY = "";

export class Choice {
  readonly #transports: readonly Transport[];
  readonly #option: TransportOption;
  readonly #worked: NetworkMemory<TransportName>;

  /** `transports` in order of preference. */
  constructor(transports: readonly Transport[], option: TransportOption, worked: NetworkMemory<TransportName>) {
    this.#transports = transports;
    this.#option = option;
    this.#worked = worked;
  }

  /** Empty if the chosen transport does not reach this proxy. Plain UDP is used only if the caller chose it. */
  order(proxy: ProxyInfo, nowMs: number): Transport[] {
    const isWanted = ({ name }: Transport): boolean =>
      this.#option === "auto" ? name !== "udp" : name === this.#option;
    const wanted = this.#transports.filter((transport) => isWanted(transport) && transport.reaches(proxy));
    const regular = wanted.filter(({ isStandIn }) => isStandIn !== true);
    const usable = regular.length > 0 ? regular : wanted;
    const known = this.#worked.of(proxy.id, nowMs) ?? this.#worked.of(ANY, nowMs);
    return [...usable.filter(({ name }) => name === known), ...usable.filter(({ name }) => name !== known)];
  }

  noteWorked(proxy: ProxyInfo, name: TransportName, nowMs: number): void {
    this.#worked.note(ANY, name, nowMs);
    this.#worked.note(proxy.id, name, nowMs);
  }
}
