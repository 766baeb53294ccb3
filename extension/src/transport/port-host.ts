/** Port host: what the pages' ports need from the transport, and how they tell an error. */
import type { Download, GetOptions } from "@tributary/client";
import type { ResponseHead } from "@tributary/contract";
import type { ToTransport } from "../shared/messages";
import { BUILT_IN, type Settings } from "../shared/settings";
import type { Allowance } from "./allowance";
import type { Detours } from "./detours";
import type { Pace } from "./pace";
import type { Trust } from "./trust";

export type CarriedDownload = Pick<Download, "head" | "body" | "abort">;

/** What all page ports share. */
export interface PagePortHost {
  settings(): Settings;
  /** Starts a download. Throws if the request cannot be a download. */
  get(url: string, options: GetOptions): CarriedDownload;
  /** Whether this is the address of a published file, whose bytes the client checks by a signature. */
  isPublished(url: string): boolean;
  detours: Detours;
  trust: Trust;
  pace: Pace;
  allowance: Allowance;
  /** The proxies that have been asked so far. */
  proxyIds(): string[];
  /** Requests being carried on all ports. */
  activeCount(): number;
  /** Whether the extension may ask for `url` in the name of a page of `pageOrigin`. */
  mayAskSite(pageOrigin: string, url: string): Promise<boolean>;
  /** Tells Origo that the proxies' answer for `url` is not the site's, if the viewer allows records. */
  reportWrong(url: string, what: string): void;
  /** A download for a page of `pageOrigin` failed at the proxies. */
  noteProxyFailure(host: string, pageOrigin: string, kind: string, detail: string): void;
  changed(): void;
  /** Opens sessions to the proxies before the first request. Resolves when they are open or have failed. */
  warm(): Promise<void>;
  /** The port was closed, by either side. */
  closed(port: object): void;
  nowMs(): number;
}

/** Names a host as the pages of `pageOrigin` meet it, for `Pace` and `Allowance`. */
export function placeOf(pageOrigin: string, { host }: Pick<URL, "host">): string {
  return `${pageOrigin} ${host}`;
}

/**
 * The options of a download that a page's request causes, carried or compared. The site's own digests are asked for at
 * the page's own origin, and at another host only after page and proxies got the same answer of it: elsewhere the page
 * itself might not reach the address (local network, mixed content).
 */
export function optionsOf(
  pageOrigin: string,
  { settings, mayAskSite, trust }: Pick<PagePortHost, "settings" | "mayAskSite" | "trust">,
  { range, cache }: Pick<Extract<ToTransport, { type: "get" }>, "range" | "cache">,
  target: URL,
): GetOptions {
  const { mode, connections } = settings();
  const isMet = target.origin === pageOrigin || trust.isMet({ pageOrigin, url: target });
  return {
    ...(isMet ? { mayAskSite: (url) => mayAskSite(pageOrigin, url) } : {}),
    // What the viewer left at its default is the operator's to set, also by an experiment.
    ...(mode === BUILT_IN.mode ? {} : { mode }),
    ...(connections === BUILT_IN.connections ? {} : { connections }),
    ...(range === null ? {} : { range }),
    ...(cache === undefined ? {} : { cache }),
    pageOrigin,
    allowFallback: "proxies",
    verbatim: true,
  };
}

/** The status that the proxies got instead of bytes. */
export function otherStatus({ status }: Pick<ResponseHead, "status">): number | undefined {
  return status === 200 || status === 206 ? undefined : status;
}

/** The same if it ended the download. */
export function statusOf(error: unknown): number | undefined {
  const { kind, got } = (error ?? {}) as { kind?: unknown; got?: unknown };
  return kind === "otherStatus" && typeof got === "number" ? got : undefined;
}

export function kindOf(error: unknown): string {
  const { kind } = (error ?? {}) as { kind?: unknown };
  return typeof kind === "string" ? kind : "failed";
}

export function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
