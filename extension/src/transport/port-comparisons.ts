/**
 * Port comparisons: the comparisons that one page has begun. The page shows the site's own answer, and the proxies are
 * asked for the same after it. The page never waits for that, and what the proxies bring is not shown to it.
 */
import type { GetOptions } from "@tributary/client";
import type { ToPage, ToTransport } from "../shared/messages";
import { carriedAddress, pageMediaUrl } from "../shared/rules";
import { compare, COMPARISON_MS_MAX, SiteBody, type Verdict } from "./comparison";
import { isRefusal } from "./detours";
import { tellsLimit } from "./allowance";
import {
  kindOf,
  optionsOf,
  otherStatus,
  placeOf,
  statusOf,
  textOf,
  type CarriedDownload,
  type PagePortHost,
} from "./port-host";
import { routeOf } from "./route";
import type { Asking } from "./trust";

type Compare = Extract<ToTransport, { type: "compare" }>;

export class PortComparisons {
  readonly #bodies = new Map<number, { body: SiteBody; abort(): void }>();

  constructor(
    readonly pageOrigin: string,
    readonly host: PagePortHost,
    readonly post: (message: ToPage) => void,
  ) {}

  /** Begins a comparison if the answer `message` is worth one. Otherwise the page need not show its body. */
  begin(message: Compare): void {
    const target = pageMediaUrl(message.url, this.pageOrigin);
    const { enabled, mode } = this.host.settings();
    const isWanted = target !== null && enabled && mode !== "direct" && !this.#bodies.has(message.id);
    if (!isWanted || !this.#start(message, target)) this.post({ type: "enough", id: message.id });
  }

  push(id: number, buffer: ArrayBuffer): void {
    const known = this.#bodies.get(id);
    if (known !== undefined && !known.body.push(new Uint8Array(buffer))) known.abort();
  }

  end(id: number, isWhole: boolean): void {
    this.#bodies.get(id)?.body.end(isWhole);
  }

  close(): void {
    for (const { abort } of this.#bodies.values()) abort();
  }

  #start(message: Compare, target: URL): boolean {
    const { detours, trust, pace, allowance } = this.host;
    const nowMs = this.host.nowMs();
    const asking: Asking = { pageOrigin: this.pageOrigin, url: target, range: message.range };
    const place = placeOf(this.pageOrigin, target);
    const { status, headers } = message.head;
    allowance.note(place, 1, nowMs);
    if (status === 429 || tellsLimit(headers)) this.#noteLimited(target);
    if (status >= 400) detours.forgiveStatus({ url: target.href, status }, this.pageOrigin);
    if (status !== 200 && status !== 206) return false;
    if (detours.isDirect(target.host, this.pageOrigin, nowMs)) return false;
    if (trust.decide(asking, this.host.proxyIds(), nowMs) === "carry") return false;
    const { connections } = this.host.settings();
    if (!allowance.allows(place, target, connections, nowMs)) return false;
    const end = trust.begin(asking);
    if (end === undefined) return false;
    allowance.note(place, connections, nowMs);
    pace.note(place, message.headMs);
    void this.#run(message, target, asking).finally(() => {
      end();
      this.#bodies.delete(message.id);
      this.post({ type: "enough", id: message.id });
    });
    return true;
  }

  async #run(message: Compare, target: URL, asking: Asking): Promise<void> {
    const body = new SiteBody();
    let download: CarriedDownload | undefined;
    const abort = (): void => {
      body.end(false);
      download?.abort("the comparison ended");
    };
    this.#bodies.set(message.id, { body, abort });
    const timer = setTimeout(abort, COMPARISON_MS_MAX);
    try {
      // What the proxies get does not depend on the mode, and a mode without proxies would show nothing.
      const { mode } = this.host.settings();
      const options: GetOptions = {
        ...optionsOf(this.pageOrigin, this.host, message, target),
        ...{ mode, purpose: "comparison" },
      };
      download = this.host.get(carriedAddress(target), options);
      const head = await download.head;
      const status = otherStatus(head);
      if (status !== undefined) return this.#noteStatus(status, asking);
      if (tellsLimit(head.headers)) return this.#noteLimited(target);
      const route = routeOf(head, target);
      if (route === undefined) return;
      const verdict = await compare(
        { head: message.head, body },
        { head, body: download.body },
        route,
        target,
        this.pageOrigin,
      );
      this.#heed(verdict, target, asking);
    } catch (error) {
      const status = statusOf(error);
      if (status !== undefined) return this.#noteStatus(status, asking);
      this.host.noteProxyFailure(target.host, this.pageOrigin, kindOf(error), textOf(error));
    } finally {
      clearTimeout(timer);
      abort();
    }
  }

  #noteLimited({ host }: URL): void {
    this.host.detours.noteDirectHost(host, this.pageOrigin, "limited", host, this.host.nowMs());
  }

  /** The site answered the page, and refused the proxies. */
  #noteStatus(status: number, asking: Asking): void {
    if (isRefusal(status)) this.host.trust.forget(asking);
    this.host.detours.noteStatus({ url: asking.url.href, status }, this.pageOrigin, this.host.nowMs());
  }

  #heed(verdict: Verdict, target: URL, asking: Asking): void {
    const { detours, trust } = this.host;
    const nowMs = this.host.nowMs();
    switch (verdict.kind) {
      case "same":
        trust.noteSame(asking, verdict.form, this.host.proxyIds(), nowMs);
        return detours.noteSuccess(target.host, this.pageOrigin);
      case "differs":
        trust.forget(asking);
        detours.noteDirectHost(target.host, this.pageOrigin, "differs", target.host, nowMs);
        return this.host.reportWrong(target.href, verdict.what);
      case "status":
      case "cors":
        return detours.noteDirectHost(target.host, this.pageOrigin, verdict.kind, verdict.what, nowMs);
      case "none":
    }
  }
}
