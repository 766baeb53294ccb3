/** WebRTC in Node, by the native part (@tributary/native-transport). */
import { isIP } from "node:net";
import {
  fingerprintLine,
  loadNativeTransport,
  readFingerprint,
  sdpValue,
  type RtcClient,
  type IceCredentials,
  type RtcAnswer,
} from "@tributary/native-transport";
import { LIMITS } from "@tributary/protocol";
import type { Transport } from "../platform";

const CANDIDATES_MAX = 16;

let client: RtcClient | undefined;

export const nodeWebRtc: Transport = {
  name: "webrtc",
  reaches: () => true,
  open: async ({ sendOffer, signal, onMessage, onClosed }) => {
    client ??= loadNativeTransport().native!.rtcClient();
    const channel = await client.connect({
      sendOffer: async (own) => readAnswer(await sendOffer(offerSdp(own))),
      signal,
      onMessage,
      onClosed,
      onWritable: () => undefined,
    });
    return { send: (bytes) => channel.send(bytes), close: () => channel.close("closed") };
  },
};

/** An offer without candidates. The proxy learns our address when we connect (RFC 8839, RFC 8841, RFC 8842). */
export function offerSdp({ ufrag, password, fingerprint }: IceCredentials & { fingerprint: Uint8Array }): string {
  return [
    "v=0",
    "o=- 1 1 IN IP4 127.0.0.1",
    "s=-",
    "t=0 0",
    "a=group:BUNDLE 0",
    "m=application 9 UDP/DTLS/SCTP webrtc-datachannel",
    "c=IN IP4 0.0.0.0",
    "a=mid:0",
    `a=ice-ufrag:${ufrag}`,
    `a=ice-pwd:${password}`,
    fingerprintLine(fingerprint),
    "a=setup:active",
    "a=sctp-port:5000",
    `a=max-message-size:${LIMITS.messageBytesMax}`,
    "",
  ].join("\r\n");
}

/** Throws when the answer lacks something that the connection needs. */
export function readAnswer(sdp: string): RtcAnswer {
  const value = (name: string): string => {
    const found = sdpValue(sdp, name);
    if (!found) throw new Error(`the proxy's answer has no ${name}`);
    return found;
  };
  const fingerprint = readFingerprint(value("fingerprint"));
  if (!fingerprint) throw new Error("the proxy's answer has a fingerprint that is none of SHA-256");
  const candidates = Array.from(
    sdp.matchAll(/^a=candidate:\S+ 1 udp \d+ (\S+) (\d{1,5}) typ /gim),
    ([, address, port]) => ({ address: address!, port: Number(port) }),
  );
  const usable = candidates
    .filter(({ address, port }) => isIP(address) !== 0 && port > 0 && port < 65_536)
    .slice(0, CANDIDATES_MAX);
  if (usable.length === 0) throw new Error("the proxy's answer has no address");
  return { fingerprint, ufrag: value("ice-ufrag"), password: value("ice-pwd"), candidates: usable };
}
