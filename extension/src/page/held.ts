/**
 * Held: requests for published files (docs/spec/publications.md §3) that wait until the page has the carrying script.
 * The browser's own answer would come from a proxy by plain HTTP, and nobody would check it.
 */
import type { Carrier, XhrEmulation } from "../shared/carry";
import { apply, globalOf, OwnPromise } from "../shared/primordials";
import { isManifestUrl, isPublishedUrl } from "../shared/rules";
import type { Link } from "./link";
import { listen, natives, page } from "./natives";
import type { AnyFunction } from "./wrap";

/** A page that has no port by then gets none soon. Players give up at about this time. */
export const HELD_MS_MAX = 10_000;

const OwnException = globalOf("DOMException");

/** The carrier, or null if the page gets none in time, or if `signal` aborts before. */
export function carrierOf(link: Pick<Link, "await">, signal?: AbortSignal): Promise<Carrier | null> {
  return new OwnPromise((resolve) => {
    link.await(resolve);
    natives.setTimeout(() => resolve(null), HELD_MS_MAX);
    if (signal !== undefined) listen(signal, "abort", () => resolve(null));
  });
}

/** A page that asks for a manifest will ask for media. That of a published video needs the port at once. */
export function heedManifest(address: string, link: Pick<Link, "prepare" | "warm">): void {
  if (!isManifestUrl(address, page.baseUri())) return;
  if (isPublishedUrl(address, page.baseUri())) link.prepare();
  link.warm();
}

/** What a held XMLHttpRequest does in the end. */
export interface HeldEnds {
  carry(carrier: Carrier): void;
  sendItself(): void;
}

/** Stands for an XMLHttpRequest that the page has sent and that waits for the carrier. */
export class HeldXhr implements XhrEmulation {
  #isOver = false;
  readonly #xhr: XMLHttpRequest;
  readonly #asked: { mime: string | undefined };
  readonly #ends: HeldEnds;
  readonly #link: Pick<Link, "await">;

  constructor(xhr: XMLHttpRequest, asked: { mime: string | undefined }, link: Pick<Link, "await">, ends: HeldEnds) {
    this.#xhr = xhr;
    this.#asked = asked;
    this.#link = link;
    this.#ends = ends;
  }

  send(): void {
    void this.#wait();
  }

  async #wait(): Promise<void> {
    const carrier = await carrierOf(this.#link);
    if (this.#isOver) return;
    this.#isOver = true;
    if (carrier === null) this.#ends.sendItself();
    else this.#ends.carry(carrier);
  }

  answer(name: string, target: AnyFunction, args: unknown[]): unknown {
    if (name === "send" || name === "setRequestHeader" || name === "withCredentials")
      throw new OwnException("The object is being sent.", "InvalidStateError");
    if (name === "overrideMimeType") this.#asked.mime = `${args[0]}`;
    if (name === "abort" && !this.#isOver) {
      // The browser itself knows the events of a request that is aborted after it was sent.
      this.#isOver = true;
      this.#ends.sendItself();
    }
    return apply(target, this.#xhr, args) as unknown;
  }

  forget(): boolean {
    this.#isOver = true;
    return false;
  }
}
