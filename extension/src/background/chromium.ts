/**
 * Background in Chromium (service worker): makes the offscreen document when a page needs it, and hands it the ports of
 * the pages that may have one (admission.ts). The rest is in core.ts.
 */
import { FRAME_PATH, TRANSPORT_PATH } from "../shared/names";
import { mayHavePort } from "./admission";
import { single } from "../shared/single";
import "./core";

/** The used part of a service worker's global scope. The DOM library has the types of a window instead. */
interface Scope {
  clients: {
    matchAll(options: {
      includeUncontrolled: boolean;
    }): Promise<{ url: string; postMessage(message: unknown, transfer: Transferable[]): void }[]>;
  };
  addEventListener(
    type: "message",
    listener: (event: MessageEvent & { waitUntil(work: Promise<unknown>): void }) => void,
  ): void;
}
const scope = self as unknown as Scope;

scope.addEventListener("message", (event) => {
  const sender = event.source as { url?: string } | null;
  const { type, pageOrigin, tabOrigin } = (event.data ?? {}) as {
    type?: unknown;
    pageOrigin?: unknown;
    tabOrigin?: unknown;
  };
  const [port] = event.ports;
  if (
    sender?.url !== chrome.runtime.getURL(FRAME_PATH) ||
    type !== "port" ||
    typeof pageOrigin !== "string" ||
    typeof tabOrigin !== "string" ||
    port === undefined
  )
    return;
  event.waitUntil(mayHavePort(pageOrigin, tabOrigin).then((may) => (may ? passPort(pageOrigin, port) : port.close())));
});

/** Makes the one offscreen document for all pages, unless it exists. */
const ensureTransport = single(async (): Promise<void> => {
  const contexts = await chrome.runtime.getContexts({ contextTypes: [chrome.runtime.ContextType.OFFSCREEN_DOCUMENT] });
  if (contexts.length > 0) return;
  await chrome.offscreen.createDocument({
    url: TRANSPORT_PATH,
    reasons: [chrome.offscreen.Reason.WEB_RTC, chrome.offscreen.Reason.WORKERS],
    justification:
      "Downloads video segments from several proxies over WebRTC data channels and decodes them in a worker.",
  });
});

async function passPort(pageOrigin: string, port: MessagePort): Promise<void> {
  await ensureTransport();
  const url = chrome.runtime.getURL(TRANSPORT_PATH);
  const transport = (await scope.clients.matchAll({ includeUncontrolled: true })).find((client) => client.url === url);
  transport?.postMessage({ type: "port", pageOrigin }, [port]);
}
