/**
 * Checks: of some chunks that came through proxies a stretch of bytes is asked for directly, at a place chosen by
 * chance, and compared: of the first four of each host in a page, and of one large one in sixteen after them. What ends
 * while checks of its host run waits for them; all of it is an error where bytes differ. A proxy that sends other bytes
 * than the site's spoils whole generations or its share of their symbols, so a few thousand bytes tell; one that
 * changes a byte here and there is not found. Where nothing can be told (no answer in time, no range, another version
 * by now) nothing is said.
 */
import type { MediaRequest } from "../shared/carry";
import type { PageResponseHead } from "../shared/messages";
import type { Natives } from "../page/natives";
import { isPartOf } from "./representation";

/**
 * Seven symbols at a stretch: without losses most of a generation goes as it is, and its symbols are dealt out to the
 * proxies so evenly (protocol.md §8.3) that one of each of a few is among them. A smaller chunk is compared whole.
 */
export const SAMPLE_BYTES = 8 * 1024;
/** Several, for of many proxies one may have none in a sample. */
export const CHECKED_FIRST = 4;
export const CHECKED_ONE_IN = 16;
/** Of smaller chunks the samples would be more than half a hundredth. */
export const LARGE_BYTES = 128 * 1024;
const ANSWER_MS_MAX = 2000;
/**
 * After the address of a sample, which goes nowhere with it: the page's Resource Timing has an entry for each, and a
 * player that looks for its segment's own by name (dash.js) would take the sample's few milliseconds for the segment's
 * rate.
 */
export const SAMPLE_FRAGMENT = "#sample";

interface Host {
  /** Checks that have begun and were not given up, until these are enough. */
  firstCount: number;
  largeCount: number;
  isWrong: boolean;
  /** Checks under way. */
  readonly pending: Set<Check>;
}

export class Checks {
  readonly #hosts = new Map<string, Host>();

  constructor(
    readonly natives: Pick<Natives, "fetch" | "setTimeout" | "clearTimeout" | "AbortController">,
    readonly random: () => number,
  ) {}

  /** Of an answer that begins; for most undefined. The sample is asked for at once. */
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

  /** Whether bytes of `url`'s host are known to be wrong; a promise while checks run. */
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

  /** Null when the site's own bytes can't be had, or are of another version. */
  async #sample(url: string, start: number, length: number, head: PageResponseHead): Promise<Uint8Array | null> {
    const controller = new this.natives.AbortController();
    const timer = this.natives.setTimeout(() => controller.abort(), ANSWER_MS_MAX);
    try {
      const headers = { Range: `bytes=${start}-${start + length - 1}` };
      const response = await this.natives.fetch(url + SAMPLE_FRAGMENT, {
        headers,
        cache: "no-store",
        signal: controller.signal,
      });
      if (isPartOf(response, head, start)) return new Uint8Array(await response.arrayBuffer());
      controller.abort();
    } catch {
      // No answer, or none that the page may read: nothing to compare with.
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
  /** Whether the site's own bytes are others; undefined when the body did not pass wholly. */
  readonly differs: Promise<boolean | undefined>;

  /** `own`: the site's bytes from `offset` of the body on. */
  constructor(offset: number, length: number, own: Promise<Uint8Array | null>) {
    this.#offset = offset;
    this.#brought = new Uint8Array(length);
    const ended = new Promise<boolean>((resolve) => (this.#end = resolve));
    this.differs = Promise.all([ended, own]).then(([isWhole, bytes]) => (isWhole ? this.#isOther(bytes) : undefined));
  }

  /** `bytes` of the body from `at` on, as they pass. */
  note(at: number, bytes: Uint8Array): void {
    const [from, to] = [Math.max(at, this.#offset), Math.min(at + bytes.length, this.#offset + this.#brought.length)];
    if (from < to) this.#brought.set(bytes.subarray(from - at, to - at), from - this.#offset);
  }

  /** The body has passed wholly, or it will not. */
  end(isWhole: boolean): void {
    this.#end(isWhole);
  }

  #isOther(own: Uint8Array | null): boolean {
    return own?.length === this.#brought.length && own.some((byte, index) => byte !== this.#brought[index]);
  }
}
