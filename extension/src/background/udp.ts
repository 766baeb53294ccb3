/**
 * UDP: whether the browser lets pages send UDP. The settings and policies that forbid it (such as Chromium's
 * `disable_non_proxied_udp` and Firefox's `proxy_only_if_behind_proxy`) hold for the WebRTC of pages and not for that
 * of an extension, so a page's own frame is asked. Only what was asked and allowed is used.
 */

let asked: Promise<void> = Promise.resolve();

/** Asks in a frame where a content script runs. */
export function askForUdp(target: chrome.scripting.InjectionTarget): void {
  asked = ask(target);
}

async function ask(target: chrome.scripting.InjectionTarget): Promise<void> {
  const isAllowed = await chrome.scripting.executeScript({ target, func: offersUdp, injectImmediately: true }).then(
    ([answer]) => answer?.result === true,
    () => undefined,
  );
  if (isAllowed !== undefined) await chrome.storage.session.set({ isUdpAllowed: isAllowed });
}

/** Waits for the answer to the last question. */
export async function isUdpAllowed(): Promise<boolean> {
  await asked;
  return (await chrome.storage.session.get("isUdpAllowed")).isUdpAllowed === true;
}

/**
 * Runs in the frame, in the content scripts' world. Without servers ICE only lists this machine's own addresses and
 * sends nothing. Where UDP is forbidden, Chromium lists none, and Firefox does not end.
 */
async function offersUdp(): Promise<boolean> {
  // Without WebRTC there is no rule for it. WebTransport heeds the browser's proxy.
  if (typeof RTCPeerConnection !== "function") return true;
  const peer = new RTCPeerConnection();
  try {
    peer.createDataChannel("");
    const offered = new Promise<boolean>((resolve) => {
      setTimeout(() => resolve(false), 5000);
      peer.onicecandidate = ({ candidate }) => {
        if (candidate === null || / udp /i.test(candidate.candidate)) resolve(candidate !== null);
      };
    });
    await peer.setLocalDescription(await peer.createOffer());
    return await offered;
  } finally {
    peer.close();
  }
}
