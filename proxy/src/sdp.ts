/** SDP: the parts of a session description that a proxy reads or writes itself (RFC 8839, RFC 8841, RFC 8842). Pure. */
import { isIP } from "node:net";
import { fingerprintLine, readFingerprint, sdpValue, type RtcAnswer } from "@tributary/native-transport";
import { LIMITS } from "@tributary/protocol";

const OFFERED_CANDIDATES_MAX = 16;
/** RFC 8445 section 5.1.2. */
const HOST_PREFERENCE = 126;
const LAST_PREFERENCE = 100;

/**
 * Removes candidates with names, because the proxy would have to look them up and mDNS names mean nothing to it. Limits
 * the number of the others, because the proxy sends connectivity checks to each of them.
 */
export function tameOffer(sdp: string): string {
  let kept = 0;
  return mapLines(sdp, (line) => {
    if (!line.startsWith("a=candidate:")) return [line];
    const fields = line.split(" ");
    const usable = isIP(fields[4] ?? "") !== 0 && fields[2]?.toLowerCase() === "udp";
    return usable && kept++ < OFFERED_CANDIDATES_MAX ? [line] : [];
  });
}

/** Adds a host candidate to the answer, before the end of the candidates. */
export function withCandidate(sdp: string, address: string, port: number): string {
  if (sdp.includes(` ${address} ${port} typ `)) return sdp;
  const priority = LAST_PREFERENCE * 2 ** 24 + 65_535 * 2 ** 8 + 255;
  const candidate = `a=candidate:99 1 UDP ${priority} ${address} ${port} typ host`;
  let placed = false;
  const answer = mapLines(sdp, (line) => {
    if (line !== "a=end-of-candidates" || placed) return [line];
    placed = true;
    return [candidate, line];
  });
  return placed ? answer : `${answer}${candidate}\r\n`;
}

export interface Offer {
  /** SHA-256 of the client's certificate, 32 bytes. */
  fingerprint: Uint8Array;
  mid: string;
}

/** Undefined unless the offer has exactly one data channel section and its client will connect. */
export function readOffer(sdp: string): Offer | undefined {
  const value = (name: string): string | undefined => sdpValue(sdp, name);
  const sections = sdp.match(/^m=.*$/gm) ?? [];
  const fingerprint = readFingerprint(value("fingerprint") ?? "");
  const mid = value("mid");
  const connects = ["actpass", "active"].includes(value("setup") ?? "");
  if (sections.length !== 1 || !/^m=application \d+ UDP\/DTLS\/SCTP webrtc-datachannel\s*$/.test(sections[0]!))
    return undefined;
  if (!connects || !fingerprint || mid === undefined || !/^[\w-]{1,32}$/.test(mid)) return undefined;
  return { fingerprint, mid };
}

export interface Answer extends RtcAnswer {
  /** A UUID. */
  id: string;
  mid: string;
}

/** Writes the answer of an end that waits for the connection: ICE lite and DTLS passive. */
export function answerSdp({ id, mid, ufrag, password, fingerprint, candidates }: Answer): string {
  const session = BigInt(`0x${id.replaceAll("-", "").slice(0, 15)}`);
  const priority = (index: number): number => HOST_PREFERENCE * 2 ** 24 + (65_535 - index) * 2 ** 8 + 255;
  return [
    "v=0",
    `o=- ${session} 1 IN IP4 127.0.0.1`,
    "s=-",
    "t=0 0",
    `a=group:BUNDLE ${mid}`,
    "a=ice-lite",
    "m=application 9 UDP/DTLS/SCTP webrtc-datachannel",
    "c=IN IP4 0.0.0.0",
    `a=mid:${mid}`,
    `a=ice-ufrag:${ufrag}`,
    `a=ice-pwd:${password}`,
    fingerprintLine(fingerprint),
    "a=setup:passive",
    "a=sctp-port:5000",
    `a=max-message-size:${LIMITS.messageBytesMax}`,
    ...candidates.map(
      ({ address, port }, index) => `a=candidate:${index + 1} 1 UDP ${priority(index)} ${address} ${port} typ host`,
    ),
    "a=end-of-candidates",
    "",
  ].join("\r\n");
}

function mapLines(sdp: string, map: (line: string) => string[]): string {
  const lines = sdp.split(/\r?\n/).filter((line) => line !== "");
  return lines
    .flatMap(map)
    .map((line) => `${line}\r\n`)
    .join("");
}
