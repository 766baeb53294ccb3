/** The few lines of an SDP that a proxy reads or writes itself (RFC 8839). Pure text. */
import { isIP } from "node:net";

const OFFERED_CANDIDATES_MAX = 16;

/**
 * The offer without candidates that would cost the proxy a name lookup (mDNS names say nothing to it anyway), and with a
 * bounded number of the others: each one is an address that the proxy will send connectivity checks to.
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

/** The answer with one more host candidate, before the end of candidates. */
export function withCandidate(sdp: string, address: string, port: number): string {
  if (sdp.includes(` ${address} ${port} typ `)) return sdp;
  const type = 100;
  const priority = type * 2 ** 24 + 65_535 * 2 ** 8 + 255;
  const candidate = `a=candidate:99 1 UDP ${priority} ${address} ${port} typ host`;
  let placed = false;
  const answer = mapLines(sdp, (line) => {
    if (line !== "a=end-of-candidates" || placed) return [line];
    placed = true;
    return [candidate, line];
  });
  return placed ? answer : `${answer}${candidate}\r\n`;
}

function mapLines(sdp: string, map: (line: string) => string[]): string {
  const lines = sdp.split(/\r?\n/).filter((line) => line !== "");
  return lines.flatMap(map).map((line) => `${line}\r\n`).join("");
}
