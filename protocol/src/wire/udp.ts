/**
 * Packets of the plain UDP transport. The handshake answers a stranger with fewer bytes than it sent and keeps no state
 * for it. Messages then carry a token that only the owner of the address was told. Pure. Rules: transport.md §5.
 */

export const UDP_VERSION = 1;
/** A HELLO is padded to this length, so that no answer is longer than the packet that caused it. */
export const UDP_HELLO_BYTES = 1200;
export const UDP_NONCE_BYTES = 8;
export const UDP_COOKIE_BYTES = 16;
export const UDP_TOKEN_BYTES = 8;
/** The longest datagram in a message, so that a packet has at most 1,200 bytes. */
export const UDP_DATAGRAM_BYTES_MAX = 1200 - 1 - UDP_TOKEN_BYTES;

export type UdpPacket =
  | { type: "hello"; nonce: Uint8Array }
  | { type: "cookie"; nonce: Uint8Array; cookie: Uint8Array }
  | { type: "open"; nonce: Uint8Array; cookie: Uint8Array }
  | { type: "opened"; nonce: Uint8Array; token: Uint8Array }
  | { type: "refused"; nonce: Uint8Array }
  | { type: "message"; token: Uint8Array; datagram: Uint8Array }
  | { type: "close"; token: Uint8Array };

const CODE = {
  hello: 0xe0,
  cookie: 0xe1,
  open: 0xe2,
  opened: 0xe3,
  refused: 0xe4,
  message: 0xe5,
  close: 0xe6,
} as const;

export function encodeUdpPacket(packet: UdpPacket): Uint8Array {
  const parts = partsOf(packet);
  const bytes = new Uint8Array(
    packet.type === "hello" ? UDP_HELLO_BYTES : 1 + parts.reduce((sum, part) => sum + part.length, 0),
  );
  bytes[0] = CODE[packet.type];
  let at = 1;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

function partsOf(packet: UdpPacket): Uint8Array[] {
  switch (packet.type) {
    case "hello":
      return [Uint8Array.of(UDP_VERSION), packet.nonce];
    case "cookie":
    case "open":
      return [packet.nonce, packet.cookie];
    case "opened":
      return [packet.nonce, packet.token];
    case "refused":
      return [packet.nonce];
    case "message":
      return [packet.token, packet.datagram];
    case "close":
      return [packet.token];
  }
}

/** Returns undefined for anything but a packet of this transport. The fields are views of `bytes`. */
export function parseUdpPacket(bytes: Uint8Array): UdpPacket | undefined {
  const rest = bytes.subarray(1);
  const [first, second] = [rest.subarray(0, UDP_NONCE_BYTES), rest.subarray(UDP_NONCE_BYTES)];
  switch (bytes[0]) {
    case CODE.hello:
      if (bytes.length !== UDP_HELLO_BYTES || rest[0] !== UDP_VERSION) return undefined;
      return { type: "hello", nonce: rest.subarray(1, 1 + UDP_NONCE_BYTES) };
    case CODE.cookie:
      return second.length === UDP_COOKIE_BYTES ? { type: "cookie", nonce: first, cookie: second } : undefined;
    case CODE.open:
      return second.length === UDP_COOKIE_BYTES ? { type: "open", nonce: first, cookie: second } : undefined;
    case CODE.opened:
      return second.length === UDP_TOKEN_BYTES ? { type: "opened", nonce: first, token: second } : undefined;
    case CODE.refused:
      return rest.length === UDP_NONCE_BYTES ? { type: "refused", nonce: first } : undefined;
    case CODE.message:
      return second.length > 0 ? { type: "message", token: first, datagram: second } : undefined;
    case CODE.close:
      return rest.length === UDP_TOKEN_BYTES ? { type: "close", token: first } : undefined;
    default:
      return undefined;
  }
}
