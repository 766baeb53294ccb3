/**
 * Frame: the extension's own page inside the page, for a moment. It makes a MessageChannel, gives one end to the page
 * and sends the other through the service worker to the transport, together with the page's origin, which it knows
 * from the browser and not from the page.
 */
import { PORT_MESSAGE } from "../shared/names";

const origin = location.ancestorOrigins[0];

if (origin !== undefined && origin !== "null" && window.parent !== window) {
  void handOver(origin);
}

async function handOver(pageOrigin: string): Promise<void> {
  const registration = await navigator.serviceWorker.ready;
  const { port1, port2 } = new MessageChannel();
  registration.active?.postMessage({ type: "port", pageOrigin }, [port1]);
  window.parent.postMessage(PORT_MESSAGE, pageOrigin, [port2]);
}
