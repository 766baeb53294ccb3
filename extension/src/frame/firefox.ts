/**
 * Frame in Firefox: the extension's own page inside the page, and the transport of that page. It makes a MessageChannel
 * and gives one end to the page; the page's origin it knows from the browser and not from the page.
 */
import { PORT_MESSAGE } from "../shared/names";
import { admitPort } from "../transport/hub";

const pageOrigin = location.ancestorOrigins[0];

if (pageOrigin !== undefined && pageOrigin !== "null" && window.parent !== window) {
  const { port1, port2 } = new MessageChannel();
  admitPort(port1, pageOrigin);
  window.parent.postMessage(PORT_MESSAGE, pageOrigin, [port2]);
}
