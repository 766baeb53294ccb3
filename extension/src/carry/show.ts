/** Show: sends the site's own answer to the transport, which compares it with what the proxies get. */
import type { MediaRequest, SiteBody } from "../shared/carry";
import { COMPARED_BYTES_MAX, type SiteHead } from "../shared/messages";
import { add, startsWith } from "../shared/primordials";
import { bytes as part, OwnTypeError, round } from "../shared/late-primordials";
import type { Read } from "../shared/late-platform";
import type { Calls, Comparing } from "./calls";
import type { Asked } from "./site";

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
  if (startsWith(wanted.url, "http:") && startsWith(head.url, "https:")) return;
  const headMs = round(calls.clock.nowMs() - startedMs);
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
  let hasFailed = false;
  try {
    for (let piece = await body.read(); piece !== undefined; piece = await body.read()) {
      add(pieces, piece);
      bytes += part.count(piece);
      if (bytes >= COMPARED_BYTES_MAX) break;
    }
  } catch {
    hasFailed = true;
  }
  body.stop();
  let at = 0;
  const read: Read = async () => {
    if (at === pieces.length && hasFailed) throw new OwnTypeError("the body broke off");
    return pieces[at++];
  };
  return { read, stop: () => undefined };
}

/** Sends up to the part that is compared. */
async function sendBody(body: SiteBody, comparing: Comparing): Promise<void> {
  let sentBytes = 0;
  let isWanted = true;
  try {
    for (let piece = await body.read(); piece !== undefined; piece = await body.read()) {
      const bytes = part.part(piece, 0, COMPARED_BYTES_MAX - sentBytes);
      sentBytes += part.count(bytes);
      isWanted = comparing.send(bytes);
      if (!isWanted || sentBytes === COMPARED_BYTES_MAX) break;
    }
    if (isWanted) comparing.end(true);
  } catch {
    comparing.end(false);
  }
  body.stop();
}
