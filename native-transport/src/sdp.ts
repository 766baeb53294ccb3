/** What both ends of WebRTC read and write alike in an SDP (RFC 8839, RFC 8122). Pure text. */

/** Of the first attribute of that name, which the caller knows: no pattern. undefined where there is none. */
export function sdpValue(sdp: string, name: string): string | undefined {
  return new RegExp(`^a=${name}:(.{1,256})$`, "m").exec(sdp)?.[1]?.trim();
}

/** SHA-256 of a certificate, 32 bytes; undefined when `value`, of the attribute "fingerprint", is no such hash. */
export function readFingerprint(value: string): Uint8Array | undefined {
  const hash = /^sha-256 ((?:[0-9a-f]{2}:){31}[0-9a-f]{2})$/i.exec(value)?.[1];
  return hash === undefined ? undefined : Buffer.from(hash.replaceAll(":", ""), "hex");
}

/** The attribute "fingerprint" of these 32 bytes. */
export function fingerprintLine(fingerprint: Uint8Array): string {
  return `a=fingerprint:sha-256 ${Array.from(fingerprint, (byte) => byte.toString(16).padStart(2, "0").toUpperCase()).join(":")}`;
}
