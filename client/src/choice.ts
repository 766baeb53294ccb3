/**
 * Choice: which transports to try with a proxy, in which order. What worked last in this network comes first, with this
 * proxy or else with any: networks let a kind of traffic pass or they do not. Pure: time arrives as `nowMs`.
 */
import type { TransportName } from "@tributary/contract/schema";
import type { ProxyInfo, TransportOption } from "./api";
import type { NetworkMemory } from "./memory";
import type { Transport } from "./platform";

/** In place of a proxy's id: with whichever it was last. */
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

  /** Empty when the one that is asked for does not reach this proxy. Plain UDP is taken only when asked for. */
  order(proxy: ProxyInfo, nowMs: number): Transport[] {
    const isWanted = ({ name }: Transport): boolean =>
      this.#option === "auto" ? name !== "udp" : name === this.#option;
    const usable = this.#transports.filter((transport) => isWanted(transport) && transport.reaches(proxy));
    const known = this.#worked.of(proxy.id, nowMs) ?? this.#worked.of(ANY, nowMs);
    return [...usable.filter(({ name }) => name === known), ...usable.filter(({ name }) => name !== known)];
  }

  noteWorked(proxy: ProxyInfo, name: TransportName, nowMs: number): void {
    this.#worked.note(ANY, name, nowMs);
    this.#worked.note(proxy.id, name, nowMs);
  }
}
