/**
 * Liars: which proxies send other bytes of a segment than the site has. The site's digest must be true first. Then each
 * proxy alone is asked for the segment over HTTP, because a body that came from several shows no sender.
 */
import type { ActiveDownload } from "../active-download";
import type { ProxyInfo } from "../api";
import { fetchThrough, readerOf } from "../modes/proxy-http";
import { SEGMENT_BYTES_MAX, SegmentCheck, type Segment } from "./segment-check";
import type { SiteDigests } from "./site-digests";

const SEARCH_MS_MAX = 20_000;

export class LiarSearch {
  #isRunning = false;

  /**
   * Undefined if the site's digest is not true any more, or never was, and while another search runs. Ends early when
   * `until` resolves.
   */
  async among(...search: Parameters<typeof liarsAmong>): Promise<ProxyInfo[] | undefined> {
    if (this.#isRunning) return undefined;
    this.#isRunning = true;
    try {
      return await liarsAmong(...search);
    } finally {
      this.#isRunning = false;
    }
  }
}

async function liarsAmong(
  proxies: readonly ProxyInfo[],
  download: ActiveDownload,
  segment: Segment,
  digests: SiteDigests,
  until: Promise<unknown>,
): Promise<ProxyInfo[] | undefined> {
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(), SEARCH_MS_MAX);
  void until.then(() => controller.abort());
  const { signal } = controller;
  try {
    const isTrue = await digests.isTrue(download.request, segment, signal);
    if (isTrue === false) return undefined;
    if (isTrue === undefined) return [];
    const lies = await Promise.all(proxies.map((proxy) => isLiar(proxy, download, segment, signal).catch(() => false)));
    return proxies.filter((_, index) => lies[index]);
  } finally {
    clearTimeout(timer);
    controller.abort();
  }
}

/** A proxy that sends no whole answer proves nothing. */
async function isLiar(
  proxy: ProxyInfo,
  download: ActiveDownload,
  segment: Segment,
  signal: AbortSignal,
): Promise<boolean> {
  const { start, end } = segment;
  const range = end === Infinity ? undefined : { start, end };
  const name = download.platform.randomUUID();
  const { head, response } = await fetchThrough(download, proxy, { gives: "body", range, name }, signal);
  if (head.status !== (range ? 206 : 200)) return false;
  const check = new SegmentCheck(range, download.platform.hash);
  check.learn([segment]);
  const reader = readerOf(response, signal);
  let bytes = 0;
  for (let piece = await reader?.read(); piece?.value !== undefined && !check.fault; piece = await reader?.read()) {
    check.take(piece.value, head);
    bytes += piece.value.length;
    if (bytes > SEGMENT_BYTES_MAX) return true;
  }
  check.finish(head);
  return check.fault !== undefined && (check.falseSegment !== undefined || head.totalBytes === bytes);
}
