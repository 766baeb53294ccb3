/**
 * Choice: which transports to try with a proxy, in which order. What worked last comes first, with this proxy or else with
 * any: networks let a kind of traffic pass or they do not. Pure: time arrives as `nowMs`.
 */
import type { TransportName } from "@tributary/origo/schema";
import type { ProxyInfo, TransportOption } from "./api";
import type { Transport } from "./platform";

interface Worked {
  name: TransportName;
  untilMs: number;
}

export class Choice {
  private readonly byProxy = new Map<string, Worked>();
  private anywhere: Worked | undefined;

  /** `transports` in order of preference. */
  constructor(
    private readonly transports: readonly Transport[],
    private readonly option: TransportOption,
    private readonly memoryMs: () => number,
  ) {}

  /** Empty when the one that is asked for does not reach this proxy. Plain UDP is taken only when asked for. */
  order(proxy: ProxyInfo, nowMs: number): Transport[] {
    const isWanted = ({ name }: Transport): boolean => (this.option === "auto" ? name !== "udp" : name === this.option);
    const usable = this.transports.filter((transport) => isWanted(transport) && transport.reaches(proxy));
    const known = [this.byProxy.get(proxy.id), this.anywhere].find((worked) => worked && worked.untilMs > nowMs);
    return [...usable.filter(({ name }) => name === known?.name), ...usable.filter(({ name }) => name !== known?.name)];
  }

  noteWorked(proxy: ProxyInfo, name: TransportName, nowMs: number): void {
    this.anywhere = { name, untilMs: nowMs + this.memoryMs() };
    this.byProxy.set(proxy.id, this.anywhere);
  }
}
