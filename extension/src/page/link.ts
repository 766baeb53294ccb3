/**
 * Link: the page's connection to the transport. It asks once per page for a port and has the document's permits heeded.
 * The carrying script uses the port (carry/calls.ts). A script of the page can pass for the carrying script, so the
 * link shows neither the port nor the permits, and none of its methods can be replaced. The call for a port is handed
 * in.
 */
import type { Carrier } from "../shared/carry";
import type { PortLike, ToPage, ToTransport } from "../shared/messages";
import { add, firstOf, freeze } from "../shared/primordials";
import type { Natives } from "./natives";
import type { Permits } from "./permits";

/** After this many lost transports the page stays native. */
const LOSSES_MAX = 3;

type Get = Extract<ToTransport, { type: "get" }>;
export type LinkState = "idle" | "connecting" | "ready" | "native" | "off";

export interface LinkEnvironment {
  /** Asks the content script for a port. */
  summon(): void;
  /** Tells the content script that the port works, so that it can remove the frame. */
  connected(): void;
  /** False once the extension is disabled, removed or updated: then nothing answers on the port. */
  isThere(): boolean;
  permits: Pick<Permits, "allows" | "willAllow" | "targets" | "phraseOf">;
}

/** What the carrying script gives the page. `natives` are the browser's own functions. */
export type MakeCarrier = (link: Link, natives: Natives) => Carrier;

export class Link {
  readonly #env: LinkEnvironment;
  #state: LinkState = "idle";
  #port: PortLike<ToTransport> | null = null;
  #carrier: Carrier | null = null;
  /** The transport said hello on this port. */
  #isGreeted = false;
  /** The page announced media before the hello. */
  #isWarmWanted = false;
  #losses = 0;
  /** Who waits for the carrier. */
  #waiting: ((carrier: Carrier | null) => void)[] = [];

  constructor(env: LinkEnvironment) {
    this.#env = env;
    freeze(this);
  }

  get state(): LinkState {
    return this.#state;
  }

  /** True if the page gets no port soon. */
  get isNative(): boolean {
    return this.#state === "native" || this.#state === "off";
  }

  /** The carrier, or null while requests are native. The first need asks for a port. */
  get carrier(): Carrier | null {
    this.prepare();
    if (this.#state === "ready" && !this.#env.isThere()) this.lose();
    return this.#state === "ready" ? this.#carrier : null;
  }

  /** Asks for a port, because the page may need it. */
  prepare(): void {
    if (this.#state !== "idle") return;
    this.#state = "connecting";
    this.#env.summon();
  }

  /** Tells `hear` the carrier as soon as the page has one, or null if it gets none soon. It may never tell. */
  await(hear: (carrier: Carrier | null) => void): void {
    this.prepare();
    add(this.#waiting, hear);
    if (this.#state !== "connecting") this.#tell();
  }

  /** Has sessions to the proxies opened as soon as there is a port, because the page is about to ask for media. */
  warm(): void {
    if (this.#isGreeted) this.post({ type: "warm" });
    else this.#isWarmWanted = true;
  }

  /** Takes the carrying script's service; it stays for the life of the page. */
  equip(carrier: Carrier): void {
    this.#carrier ??= carrier;
    this.#decideIfWhole();
  }

  /** Takes a port from the extension's frame. The port counts once the transport says hello on it. */
  attach(port: PortLike<ToTransport>): void {
    if (this.#state !== "connecting" || this.#port !== null) return port.close();
    this.#port = port;
    // eslint-disable-next-line tributary/primordials -- The event is an object of the page script.
    port.onmessage = (event: MessageEvent) => this.#handle(event.data as ToPage);
  }

  /** The viewer turned the extension off (`on` is false) or on again. */
  switch(on: boolean): void {
    if (on) {
      if (this.#state === "off") this.#state = "idle";
      return;
    }
    this.#state = "off";
    this.#drop();
  }

  /** Tells the transport how many bytes the page fetched directly. */
  noteDirect(bytes: number): void {
    if (this.#state === "ready") this.post({ type: "direct", bytes });
  }

  /** Sends to the transport. A comparison is about an address that the document may fetch. */
  post(given: Exclude<ToTransport, Get>, transfer: Transferable[] = []): void {
    // The copy's fields cannot change after the check.
    const message = { ...given } as ToTransport;
    if (message.type === "get" || (message.type === "compare" && !this.#env.permits.allows(message.url))) return;
    this.#port?.postMessage(message, transfer);
  }

  /** Asks the transport. False if the document may not fetch what is asked for. */
  ask(request: Omit<Get, "type" | "targets">): boolean {
    const message: Get = { ...request, type: "get", targets: this.#env.permits.targets };
    const isPermitted = this.#env.permits.allows(message.url);
    if (isPermitted) this.#port?.postMessage(message);
    return isPermitted;
  }

  /** See `Permits`. */
  allows(url: string): boolean {
    return this.#env.permits.allows(url);
  }

  /** See `Permits`. */
  willAllow(url: string): Promise<boolean> {
    return this.#env.permits.willAllow(url);
  }

  /** See `Permits`. */
  phraseOf(url: string, status: number): string | undefined {
    return this.#env.permits.phraseOf(url, status);
  }

  /** See `LinkEnvironment`. */
  isThere(): boolean {
    return this.#env.isThere();
  }

  /**
   * Gives up a transport that does not answer. While the extension is there, a later need may ask for a port again, a
   * few times.
   */
  lose(): void {
    this.#losses += 1;
    this.#state = this.#losses < LOSSES_MAX && this.#env.isThere() ? "idle" : "native";
    this.#drop();
  }

  #decideIfWhole(): void {
    if (this.#state === "connecting" && this.#isGreeted && this.#carrier !== null) this.#state = "ready";
    if (this.#state === "ready") this.#tell();
  }

  #handle(message: ToPage): void {
    if (message.type !== "hello") return this.#carrier?.handle(message);
    this.#isGreeted = true;
    if (this.#isWarmWanted) this.post({ type: "warm" });
    this.#isWarmWanted = false;
    this.#env.connected();
    this.#decideIfWhole();
  }

  #tell(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    const carrier = this.#state === "ready" ? this.#carrier : null;
    firstOf(waiting, (hear) => void hear(carrier));
  }

  #drop(): void {
    this.#tell();
    this.#port?.close();
    this.#port = null;
    this.#isGreeted = false;
    this.#carrier?.lost();
  }
}

freeze(Link.prototype);
