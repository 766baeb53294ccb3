import { encodeUdpPacket, parseUdpPacket, UDP_COOKIE_BYTES, UDP_HELLO_BYTES, type UdpPacket } from "./udp";

const eight = Uint8Array.from([1, 2, 3, 4, 5, 6, 7, 8]);
const cookie = new Uint8Array(UDP_COOKIE_BYTES).fill(9);
const PACKETS: UdpPacket[] = [
  { type: "hello", nonce: eight },
  { type: "cookie", nonce: eight, cookie },
  { type: "open", nonce: eight, cookie },
  { type: "opened", nonce: eight, token: eight },
  { type: "refused", nonce: eight },
  { type: "message", token: eight, datagram: cookie },
  { type: "close", token: eight },
];

describe("udp packets", () => {
  test.each(PACKETS)("$type is read as it was written", (packet) => {
    expect(parseUdpPacket(encodeUdpPacket(packet))).toEqual(packet);
  });

  test.each(PACKETS)("$type without its last byte is not a packet", (packet) => {
    const bytes = encodeUdpPacket(packet).slice(0, packet.type === "message" ? 9 : -1);
    expect(parseUdpPacket(bytes)).toBeUndefined();
  });

  test("no answer to a stranger is longer than the stranger's packet", () => {
    const answers = PACKETS.filter(({ type }) => ["cookie", "opened", "refused"].includes(type)).map(
      (packet) => encodeUdpPacket(packet).length,
    );
    expect(Math.max(...answers)).toBeLessThanOrEqual(UDP_HELLO_BYTES / 40);
  });

  test("another version and garbage are not packets", () => {
    const hello = encodeUdpPacket({ type: "hello", nonce: eight });
    hello[1] = 2;
    expect(parseUdpPacket(hello)).toBeUndefined();
    for (const bytes of [[], [0x10, 1, 2], [0xe7, ...eight]])
      expect(parseUdpPacket(Uint8Array.from(bytes))).toBeUndefined();
  });
});
