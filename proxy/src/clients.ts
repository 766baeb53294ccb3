/**
 * Clients: what each client's address uses of this proxy: bytes, time of the processor, and offers. Many people may
 * share one address, so the bounds are wide. An IPv6 client can use all addresses of its /64, so the /64 counts as one.
 * It keeps counts and says what is too much. Others refuse and end things. In memory, never logged.
 */
import type { Rejection } from "@tributary/contract";
import { parse } from "ipaddr.js";

export interface ClientLimits {
  /** For sent bytes, and also for bytes from origins, in a window of `BYTES_WINDOW_MS`. */
  addressBytes: number;
  /** Offers in a minute. */
  addressOffers: number;
  /** The share of time that goes to reading the messages of all clients, in thousandths. */
  controlPerMille: number;
}

/** The bytes of an address are counted for this time, and then from 0 again. */
const BYTES_WINDOW_MS = 600_000;
const OFFERS_WINDOW_MS = 60_000;
/** A client that waits for the end of a window does not notice a time this short. */
const WORK_WINDOW_MS = 100;
/**
 * Reading a message takes far less. A longer time is one in which another process had the processor, and not the
 * client's work.
 */
const MESSAGE_MS_MAX = 4;
/** A session that took more than its part in this many windows in a row is dropped. */
const WORK_WINDOWS_MAX = 20;
/** This many addresses are remembered. The ones that did nothing for the longest time are forgotten first. */
const CLIENTS_MAX = 20_000;

/** The name of a client: its IPv4 address, or the /64 of its IPv6 address. Anything else names itself. */
export function clientOf(address: string): string {
  try {
    const parsed = parse(address.replace(/%.*$/, ""));
    if (parsed.kind() === "ipv4") return parsed.toString();
    const six = parsed as import("ipaddr.js").IPv6;
    if (six.isIPv4MappedAddress()) return six.toIPv4Address().toString();
    return `${six.parts
      .slice(0, 4)
      .map((part) => part.toString(16))
      .join(":")}::/64`;
  } catch {
    return address;
  }
}

export class Clients {
  /** The one that did something most recently comes last. */
  readonly #clients = new Map<string, Client>();
  readonly #work = new WorkWindow();

  readonly #limits: () => ClientLimits;
  readonly #nowMs: () => number;

  constructor(limits: () => ClientLimits, nowMs: () => number = () => performance.now()) {
    this.#limits = limits;
    this.#nowMs = nowMs;
  }

  of(address: string): Client {
    const name = clientOf(address);
    const client = this.#clients.get(name) ?? new Client(name, this.#limits, this.#nowMs, this.#work);
    this.#clients.delete(name);
    this.#clients.set(name, client);
    if (this.#clients.size > CLIENTS_MAX) this.#clients.delete(this.#clients.keys().next().value!);
    return client;
  }
}

/** The time that reading the messages of all clients took in the present window. */
class WorkWindow {
  startMs = 0;
  spentMs = 0;
  /** How many were heard in it. */
  clients = 0;

  /** Begins a new window when the present one is over. */
  roll(nowMs: number): void {
    if (nowMs < this.startMs + WORK_WINDOW_MS) return;
    this.startMs = nowMs;
    this.spentMs = 0;
    this.clients = 0;
  }
}

/** The time that reading the messages of one session took in the window that began at `sinceMs`. */
export class SessionWork {
  sinceMs = -1;
  spentMs = 0;
  #windowsOver = 0;
  #overSinceMs = -Infinity;

  /** Returns in how many windows in a row, up to the one that began at `startMs`, the session took too much. */
  noteOver(startMs: number): number {
    if (this.#overSinceMs === startMs) return this.#windowsOver;
    this.#windowsOver = startMs - this.#overSinceMs < 3 * WORK_WINDOW_MS ? this.#windowsOver + 1 : 1;
    this.#overSinceMs = startMs;
    return this.#windowsOver;
  }
}

export class Client {
  #bytesSinceMs = -Infinity;
  #sentBytes = 0;
  #originBytes = 0;
  #offersSinceMs = -Infinity;
  #offers = 0;
  /** The window that `#workMs` belongs to, by its start. */
  #workSinceMs = -1;
  #workMs = 0;
  /** The sessions that were heard in the present window. */
  #sessions = 0;

  readonly #limits: () => ClientLimits;
  readonly #nowMs: () => number;
  readonly #work: WorkWindow;

  constructor(
    readonly name: string,
    limits: () => ClientLimits,
    nowMs: () => number,
    work: WorkWindow,
  ) {
    this.#limits = limits;
    this.#nowMs = nowMs;
    this.#work = work;
  }

  noteSent(bytes: number): void {
    this.#rollBytes();
    this.#sentBytes += bytes;
  }

  noteOrigin(bytes: number): void {
    this.#rollBytes();
    this.#originBytes += bytes;
  }

  /** Why this client gets no more bytes for now. */
  bytesRefusal(): Rejection | undefined {
    this.#rollBytes();
    const limit = this.#limits().addressBytes;
    if (this.#sentBytes < limit && this.#originBytes < limit) return undefined;
    const got = Math.max(this.#sentBytes, this.#originBytes);
    const message = `This address has used ${got} bytes of this proxy within ten minutes, limit ${limit}.`;
    return { kind: "budgetSpent", message, got, limit };
  }

  /** Counts an offer. Says why it is one too many. */
  noteOffer(): Rejection | undefined {
    const nowMs = this.#nowMs();
    if (nowMs >= this.#offersSinceMs + OFFERS_WINDOW_MS) {
      this.#offersSinceMs = nowMs;
      this.#offers = 0;
    }
    const limit = this.#limits().addressOffers;
    const got = ++this.#offers;
    if (got <= limit) return undefined;
    const message = `This address made too many offers within a minute: got ${got}, limit ${limit}.`;
    return { kind: "tooManySessions", message, got, limit };
  }

  /**
   * Says whether the next message of a session is read. While all messages together take less than `controlPerMille`
   * of the time, each is. After that, clients that took more than an equal part wait for the next window, and of their
   * sessions those that took more than an equal part of it: their messages are lost, as on any path. `drop`: the
   * session does not stop.
   */
  mayWork(nowMs: number, session: SessionWork): "yes" | "later" | "drop" {
    const work = this.#work;
    work.roll(nowMs);
    if (this.#workSinceMs !== work.startMs) {
      this.#workSinceMs = work.startMs;
      this.#workMs = 0;
      this.#sessions = 0;
      work.clients++;
    }
    if (session.sinceMs !== work.startMs) {
      session.sinceMs = work.startMs;
      session.spentMs = 0;
      this.#sessions++;
    }
    const allMs = (WORK_WINDOW_MS * this.#limits().controlPerMille) / 1000;
    const partMs = allMs / work.clients;
    if (work.spentMs < allMs || this.#workMs < partMs || session.spentMs < partMs / this.#sessions) return "yes";
    return session.noteOver(work.startMs) > WORK_WINDOWS_MAX ? "drop" : "later";
  }

  /** Counts the time that reading one message took. */
  noteWork(tookMs: number, session: SessionWork): void {
    const ms = Math.min(tookMs, MESSAGE_MS_MAX);
    session.spentMs += ms;
    this.#workMs += ms;
    this.#work.spentMs += ms;
  }

  #rollBytes(): void {
    const nowMs = this.#nowMs();
    if (nowMs < this.#bytesSinceMs + BYTES_WINDOW_MS) return;
    this.#bytesSinceMs = nowMs;
    this.#sentBytes = 0;
    this.#originBytes = 0;
  }
}
