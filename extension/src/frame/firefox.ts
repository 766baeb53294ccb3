/**
 * Frame in Firefox: the extension's own page inside the page, and the transport of that page. It makes a MessageChannel
 * and gives one end to the page. It has the page's origin from the browser and not from the page. The background's
 * messages to all contexts do not reach it, because Firefox counts it as a part of the page.
 */
import { CLIENT_ID_KEY, PORT_MESSAGE } from "../shared/names";
import { SETTING_KEYS } from "../shared/settings";
import { admitPort, reloadSettings } from "../transport/hub";

const pageOrigin = location.ancestorOrigins[0];

if (pageOrigin !== undefined && pageOrigin !== "null" && window.parent !== window) {
  const { port1, port2 } = new MessageChannel();
  admitPort(port1, pageOrigin);
  chrome.storage.onChanged.addListener((changes, area) => {
    const isHeeded = (key: string): boolean =>
      key.startsWith(CLIENT_ID_KEY) || SETTING_KEYS.some((each) => each === key);
    if (area === "local" && Object.keys(changes).some(isHeeded)) void reloadSettings();
  });
  window.parent.postMessage(PORT_MESSAGE, pageOrigin, [port2]);
}
