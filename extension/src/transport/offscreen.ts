/** Entry of Chromium's offscreen document: pages' ports come from the service worker. */
import { admitPort } from "./hub";

navigator.serviceWorker.addEventListener("message", (event) => {
  const { type, pageOrigin } = (event.data ?? {}) as { type?: unknown; pageOrigin?: unknown };
  const port = event.ports[0];
  if (type === "port" && typeof pageOrigin === "string" && port !== undefined) admitPort(port, pageOrigin);
});
navigator.serviceWorker.startMessages();
