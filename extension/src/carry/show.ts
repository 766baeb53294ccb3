/** Show: sends the site's own answer to the transport, which compares it with what the proxies get. */
import type { MediaRequest } from "../shared/carry";
import { COMPARED_BYTES_MAX, type SiteHead } from "../shared/messages";
import type { Calls, Comparing } from "./calls";
import type { Asked } from "./site";

export type SiteBody = AsyncIterable<Uint8Array<ArrayBuffer>>;

/** `copy` is called at once if the body is wanted. */
export function showTransport(
  calls: Calls,
  asked: Asked,
  wanted: MediaRequest,
  { head, startedMs, copy }: { head: SiteHead; startedMs: number; copy: () => SiteBody },
): void {
  // The browser upgraded the request, so a proxy must not ask in the clear.
  if (wanted.url.startsWith("http:") && head.url.startsWith("https:")) return;
  const nowMs = calls.clock.nowMs();
  asked.note(wanted.url, nowMs);
  const comparing = calls.compare({ ...wanted, head, headMs: Math.round(nowMs - startedMs) });
  if (head.status < 300) void sendBody(copy(), comparing);
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
