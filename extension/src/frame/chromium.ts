/**
 * Frame in Chromium: the extension's own page inside the page, for a moment. It makes a MessageChannel, gives one end
 * to the page and sends the other through the service worker to the transport. It adds the origins of the page and of
 * its tab, which it has from the browser and not from the page.
 */
import { PORT_MESSAGE } from "../shared/names";

const origins = [...location.ancestorOrigins];
const [origin, tabOrigin] = [origins[0], origins.at(-1)];

if (origin !== undefined && origin !== "null" && tabOrigin !== undefined && window.parent !== window) {
  void handOver(origin, tabOrigin);
}

async function handOver(pageOrigin: string, tabOrigin: string): Promise<void> {
  const registration = await navigator.serviceWorker.ready;
  const { port1, port2 } = new MessageChannel();
  registration.active?.postMessage({ type: "port", pageOrigin, tabOrigin }, [port1]);
  window.parent.postMessage(PORT_MESSAGE, pageOrigin, [port2]);
}
