/**
 * Checks: compares samples of what the proxies sent with what the site itself sends. The page asks the site directly
 * for a few bytes at a random place of a chunk. In each page it does so for the first four chunks of each host, and
 * later for one large chunk in sixteen. A request that ends while checks of its host run waits for them, and it fails
 * if bytes differ. A proxy with wrong bytes spoils whole generations, or its share of their symbols, so a few thousand
 * bytes show it. A proxy that changes single bytes is not found. A check that cannot compare (no answer in time, no
 * range, another version of the file) reports nothing.
 */
import { formatRange } from "@tributary/contract";
import type { MediaRequest } from "../shared/carry";
import type { PageResponseHead } from "../shared/messages";
import type { Natives } from "../page/natives";
import { isPartOf } from "./representation";

/**
 * Seven symbols in a row. Without losses most symbols travel uncoded, and the proxies take turns with them
 * (protocol.md §8.3), so the sample holds a symbol of each of a few proxies. A smaller chunk is compared whole.
 */
export const SAMPLE_BYTES = 8 * 1024;
/** Several checks are needed, because one sample may miss a proxy. */
export const CHECKED_FIRST = 4;
export const CHECKED_ONE_IN = 16;
/** Samples of smaller chunks would add more than 0.5 % to the traffic. */
export const LARGE_BYTES = 128 * 1024;
const ANSWER_MS_MAX = 2000;
/**
 * Added to the address of a sample; a fragment is not sent. The page's Resource Timing lists each sample, and a player
 * that looks up its segment by name (dash.js) would otherwise measure the sample instead of the segment.
 */
export const SAMPLE_FRAGMENT = "#sample";

interface Host {
  /** Checks that began and were not given up. */
  firstCount: number;
  largeCount: number;
  isWrong: boolean;
  readonly pending: Set<Check>;
}

export class Checks {
  readonly #hosts = new Map<string, Host>();

  constructor(
    readonly natives: Pick<Natives, "fetch" | "setTimeout" | "clearTimeout" | "AbortController">,
    readonly random: () => number,
  ) {}

  /** Starts a check of an answer that begins. Most answers are not checked: undefined. */
  begin({ url, range }: MediaRequest, head: PageResponseHead): Check | undefined {
    const { status, totalBytes } = head;
    if ((status !== 200 && status !== 206) || totalBytes === null || totalBytes === 0) return undefined;
    const host = this.#hostOf(url);
    const isTurn = totalBytes >= LARGE_BYTES && ++host.largeCount % CHECKED_ONE_IN === 0;
    if (host.firstCount >= CHECKED_FIRST && !isTurn) return undefined;
    host.firstCount += 1;
    const length = Math.min(SAMPLE_BYTES, totalBytes);
    const offset = Math.floor(this.random() * (totalBytes - length + 1));
    const start = offset + (status === 206 ? (range?.start ?? 0) : 0);
    const check = new Check(offset, length, this.#sample(url, start, length, head));
    host.pending.add(check);
    void check.differs.then((differs) => {
      host.pending.delete(check);
      if (differs === undefined) host.firstCount -= 1;
      else if (differs) Object.assign(host, { isWrong: true, firstCount: 0 });
      else if (host.pending.size === 0) host.isWrong = false;
    });
    return check;
  }

  #hostOf(url: string): Host {
    const { host: name } = new URL(url);
    const host = this.#hosts.get(name) ?? { firstCount: 0, largeCount: 0, isWrong: false, pending: new Set() };
    this.#hosts.set(name, host);
    return host;
  }

  /** Whether the host of `url` is known to come with wrong bytes. While checks run, a promise. */
  verdict(url: string): boolean | Promise<boolean> {
    const { isWrong, pending } = this.#hostOf(url);
    if (isWrong || pending.size === 0) return isWrong;
    let timer: number | undefined;
    const late = new Promise<false>(
      (resolve) => (timer = this.natives.setTimeout(() => resolve(false), ANSWER_MS_MAX)),
    );
    const all = Promise.all([...pending].map(({ differs }) => differs)).then((each) => each.includes(true));
    return Promise.race([all, late]).finally(() => this.natives.clearTimeout(timer));
  }

  /** The site's own bytes; null if the site does not give them or has another version. */
  async #sample(url: string, start: number, length: number, head: PageResponseHead): Promise<Uint8Array | null> {
    const controller = new this.natives.AbortController();
    const timer = this.natives.setTimeout(() => controller.abort(), ANSWER_MS_MAX);
    try {
      const headers = { Range: formatRange({ start, end: start + length - 1 }) };
      const response = await this.natives.fetch(url + SAMPLE_FRAGMENT, {
        headers,
        cache: "no-store",
        signal: controller.signal,
      });
      if (isPartOf(response, head, start)) return new Uint8Array(await response.arrayBuffer());
      controller.abort();
    } catch {
      // The site did not answer, or the page may not read the answer.
    } finally {
      this.natives.clearTimeout(timer);
    }
    return null;
  }
}

export class Check {
  readonly #offset: number;
  readonly #brought: Uint8Array;
  #end!: (isWhole: boolean) => void;
  /** Whether the site's own bytes differ; undefined if the body was not seen in full. */
  readonly differs: Promise<boolean | undefined>;

  /** `own` are the site's bytes from `offset` of the body on. */
  constructor(offset: number, length: number, own: Promise<Uint8Array | null>) {
    this.#offset = offset;
    this.#brought = new Uint8Array(length);
    const ended = new Promise<boolean>((resolve) => (this.#end = resolve));
    this.differs = Promise.all([ended, own]).then(([isWhole, bytes]) => (isWhole ? this.#isOther(bytes) : undefined));
  }

  /** Takes `bytes` of the body, which begin at its offset `at`. */
  note(at: number, bytes: Uint8Array): void {
    const [from, to] = [Math.max(at, this.#offset), Math.min(at + bytes.length, this.#offset + this.#brought.length)];
    if (from < to) this.#brought.set(bytes.subarray(from - at, to - at), from - this.#offset);
  }

  /** Ends the check; `isWhole` says whether the whole body was seen. */
  end(isWhole: boolean): void {
    this.#end(isWhole);
  }

  #isOther(own: Uint8Array | null): boolean {
    return own?.length === this.#brought.length && own.some((byte, index) => byte !== this.#brought[index]);
  }
}
