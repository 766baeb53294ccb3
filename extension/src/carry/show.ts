/** Show: sends the site's own answer to the transport, which compares it with what the proxies get. */
import type { MediaRequest } from "../shared/carry";
import { COMPARED_BYTES_MAX, type SiteHead } from "../shared/messages";
import type { Calls, Comparing } from "./calls";
import type { Asked } from "./site";

export type SiteBody = AsyncIterable<Uint8Array<ArrayBuffer>>;

/**
 * `copy` is called at once if the body is wanted. The browser's list of requests may have to permit the address
 * (`Permits`), and it has a request only after its end. The answer then waits in memory.
 */
export async function showTransport(
  calls: Calls,
  asked: Asked,
  wanted: MediaRequest,
  { head, startedMs, copy }: { head: SiteHead; startedMs: number; copy: () => SiteBody },
): Promise<void> {
  // The browser upgraded the request, so a proxy must not ask in the clear.
  if (wanted.url.startsWith("http:") && head.url.startsWith("https:")) return;
  const headMs = Math.round(calls.clock.nowMs() - startedMs);
  let body = head.status < 300 ? copy() : null;
  if (!calls.link.allows(wanted.url)) {
    body &&= await kept(body);
    if (!(await calls.link.willAllow(wanted.url))) return;
  }
  asked.note(wanted.url, calls.clock.nowMs());
  const comparing = calls.compare({ ...wanted, head, headMs });
  if (body !== null) void sendBody(body, comparing);
}

/** The body after its end, up to the part that is compared. */
async function kept(body: SiteBody): Promise<SiteBody> {
  const pieces: Uint8Array<ArrayBuffer>[] = [];
  let bytes = 0;
  let failure: unknown;
  try {
    for await (const piece of body) {
      pieces.push(piece);
      bytes += piece.length;
      if (bytes >= COMPARED_BYTES_MAX) break;
    }
  } catch (error) {
    failure = error;
  }
  return (async function* () {
    yield* pieces;
    if (failure !== undefined) throw failure;
  })();
}

/** Sends up to the part that is compared. */
async function sendBody(pieces: SiteBody, comparing: Comparing): Promise<void> {
  let sentBytes = 0;
  try {
    for await (const piece of pieces) {
      const bytes = piece.subarray(0, COMPARED_BYTES_MAX - sentBytes);
      sentBytes += bytes.length;
      if (!comparing.send(bytes)) return;
      if (sentBytes === COMPARED_BYTES_MAX) break;
    }
    comparing.end(true);
  } catch {
    comparing.end(false);
  }
}
