/** The lines of an SDP that proxies and clients both read or write (RFC 8839, RFC 8122). Pure text. */

/** The value of the first attribute called `name`, or undefined. `name` has no special characters of patterns. */
export function sdpValue(sdp: string, name: string): string | undefined {
  return new RegExp(`^a=${name}:(.{1,256})$`, "m").exec(sdp)?.[1]?.trim();
}

/** The SHA-256 in the value of a "fingerprint" attribute, 32 bytes. undefined when the value holds no SHA-256. */
export function readFingerprint(value: string): Uint8Array | undefined {
  const hash = /^sha-256 ((?:[0-9a-f]{2}:){31}[0-9a-f]{2})$/i.exec(value)?.[1];
  return hash === undefined ? undefined : Buffer.from(hash.replaceAll(":", ""), "hex");
}

/** The "fingerprint" attribute for a SHA-256 of 32 bytes. */
export function fingerprintLine(fingerprint: Uint8Array): string {
  const pairs = Array.from(fingerprint, (byte) => byte.toString(16).padStart(2, "0").toUpperCase());
  return `a=fingerprint:sha-256 ${pairs.join(":")}`;
}
