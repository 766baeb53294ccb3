/**
 * Lookup: the addresses of a host name. Nobody waits for the names of another client: public names are asked of the
 * DNS servers directly, without the threads of the process that all of Node's other look-ups share (getaddrinfo). Those
 * threads are used only for the hosts that the operator lists in ALLOW_PRIVATE_HOSTS, since only the system knows the
 * names of containers, search domains and the like. Names in /etc/hosts are read from there. Not here: which addresses
 * may be dialled (policy.ts).
 */
import dns from "node:dns/promises";
import { readFile } from "node:fs/promises";
import { isIP } from "node:net";
import { Seats } from "../seats";
import { abortable } from "./abortable";
import { EgressError, egressError } from "./error";

export interface LookupOptions {
  /** True for the hosts that only the system may know. They must be few. */
  isPrivate: (host: string) => boolean;
  hostsFile?: string;
  /** The most look-ups at once. Clients share them. */
  lookupsMax?: number;
}

const HOSTS_FILE = "/etc/hosts";
const HOSTS_KEPT_MS = 5000;
const LOOKUPS_MAX = 256;
const LOOKUP_MS_MAX = 5000;
/** A DNS server gets this time for its answer, this often. */
const ANSWER_MS_MAX = 1500;
const ANSWER_TRIES = 2;
/** Once the IPv4 addresses are known, the others may take this much longer (RFC 8305 section 3). */
const SECOND_FAMILY_MS = 50;
/** A name without addresses is not asked for again during this time. */
const FAILED_KEPT_MS = 5000;
const FAILED_MAX = 10_000;
/** Of the four threads that look-ups of the system can use. */
const SYSTEM_LOOKUPS_MAX = 2;

interface Running {
  readonly client: string;
  idleSinceMs(): number;
  end(): void;
}

export class Lookup {
  readonly #running = new Map<string, Promise<string[]>>();
  readonly #seats: Seats<Running>;
  /** Names without addresses, and until when that is believed. The oldest comes first. */
  readonly #failed = new Map<string, number>();
  #hosts: { readMs: number; addresses: Promise<Map<string, string[]>> } | undefined;
  #systemLookups = 0;
  readonly #systemQueue: (() => void)[] = [];

  readonly #options: LookupOptions;

  constructor(options: LookupOptions) {
    this.#options = options;

    this.#seats = new Seats(() => options.lookupsMax ?? LOOKUPS_MAX);
  }

  /** IPv4 addresses come first. Throws an `EgressError` when there is none, and when the client has to wait. */
  async addressesOf(host: string, client: string): Promise<string[]> {
    const listed = (await this.#readHosts()).get(host.toLowerCase());
    if (listed) return listed;
    // RFC 6761 section 6.3.
    if (host === "localhost" || host.endsWith(".localhost")) return ["127.0.0.1", "::1"];
    if ((this.#failed.get(host) ?? 0) > performance.now()) throw failure(host);
    let lookup = this.#running.get(host);
    if (!lookup) {
      lookup = this.#start(host, client).finally(() => this.#running.delete(host));
      this.#running.set(host, lookup);
    }
    return lookup;
  }

  async #start(host: string, client: string): Promise<string[]> {
    const startMs = performance.now();
    const given = new AbortController();
    const busy = egressError("proxyBusy", "This proxy looks up too many names for this client. Try again.");
    const seat: Running = { client, idleSinceMs: () => startMs, end: () => given.abort(busy) };
    if (!this.#seats.take(seat)) throw busy;
    const timer = setTimeout(() => given.abort(failure(host)), LOOKUP_MS_MAX);
    try {
      const isPrivate = this.#options.isPrivate(host);
      return await (isPrivate ? this.#askSystem(host, given.signal) : askServers(host, given.signal));
    } catch (error) {
      if (error === busy) throw busy;
      this.#noteFailed(host);
      throw failure(host);
    } finally {
      clearTimeout(timer);
      this.#seats.leave(seat);
    }
  }

  async #askSystem(host: string, signal: AbortSignal): Promise<string[]> {
    const asked = this.#inTurn(() => dns.lookup(host, { all: true }));
    return (await abortable(asked, signal)).map(({ address }) => address);
  }

  /** Runs `SYSTEM_LOOKUPS_MAX` at once. A look-up of the system cannot be stopped. */
  async #inTurn<T>(run: () => Promise<T>): Promise<T> {
    if (this.#systemLookups >= SYSTEM_LOOKUPS_MAX) await new Promise<void>((go) => this.#systemQueue.push(go));
    else this.#systemLookups++;
    try {
      return await run();
    } finally {
      const next = this.#systemQueue.shift();
      if (next) next();
      else this.#systemLookups--;
    }
  }

  #noteFailed(host: string): void {
    this.#failed.delete(host);
    this.#failed.set(host, performance.now() + FAILED_KEPT_MS);
    if (this.#failed.size > FAILED_MAX) this.#failed.delete(this.#failed.keys().next().value!);
  }

  #readHosts(): Promise<Map<string, string[]>> {
    const nowMs = performance.now();
    if (!this.#hosts || nowMs >= this.#hosts.readMs + HOSTS_KEPT_MS)
      this.#hosts = { readMs: nowMs, addresses: hostsIn(this.#options.hostsFile ?? HOSTS_FILE) };
    return this.#hosts.addresses;
  }
}

async function askServers(host: string, signal: AbortSignal): Promise<string[]> {
  const resolver = new dns.Resolver({ timeout: ANSWER_MS_MAX, tries: ANSWER_TRIES });
  const none = (): string[] => [];
  try {
    const six = resolver.resolve6(host).catch(none);
    const four = await abortable(resolver.resolve4(host).catch(none), signal);
    const late = new Promise<string[]>((resolve) => setTimeout(() => resolve([]), SECOND_FAMILY_MS));
    const others = await abortable(four.length > 0 ? Promise.race([six, late]) : six, signal);
    if (four.length + others.length === 0) throw failure(host);
    return [...four, ...others];
  } finally {
    resolver.cancel();
  }
}

/** The addresses of each name in a hosts file (hosts(5)). Empty when there is no such file. */
async function hostsIn(file: string): Promise<Map<string, string[]>> {
  const addresses = new Map<string, string[]>();
  const text = await readFile(file, "utf8").catch(() => "");
  for (const line of text.split("\n")) {
    const [address = "", ...names] = line
      .replace(/#.*$/, "")
      .split(/\s+/)
      .filter((word) => word !== "");
    if (isIP(address) === 0) continue;
    for (const name of names.map((each) => each.toLowerCase().replace(/\.$/, "")))
      addresses.set(name, [...(addresses.get(name) ?? []), address]);
  }
  return addresses;
}

function failure(host: string): EgressError {
  return egressError("dnsFailed", `The name ${host} could not be resolved.`);
}
