/** Tests the SDP of a client that connects. The suite in test/transports tests the messages. */
import { offerSdp, readAnswer } from "./webrtc-node";

const HASH = Array.from({ length: 32 }, (_, index) => index.toString(16).padStart(2, "0"))
  .join(":")
  .toUpperCase();
const FINGERPRINT = Buffer.from(HASH.replaceAll(":", ""), "hex");

const answer = (...candidates: string[]) =>
  [
    "v=0",
    "m=application 9 UDP/DTLS/SCTP webrtc-datachannel",
    "a=ice-ufrag:name",
    "a=ice-pwd:secret",
    `a=fingerprint:sha-256 ${HASH}`,
    ...candidates.map((rest) => `a=candidate:${rest}`),
    "",
  ].join("\r\n");

test("webrtc: an offer says that we connect, and gives our name and fingerprint", () => {
  const offer = offerSdp({ ufrag: "u", password: "p", fingerprint: FINGERPRINT });
  expect(offer.split("\r\n")).toEqual(
    expect.arrayContaining([
      "m=application 9 UDP/DTLS/SCTP webrtc-datachannel",
      "a=ice-ufrag:u",
      "a=ice-pwd:p",
      `a=fingerprint:sha-256 ${HASH}`,
      "a=setup:active",
    ]),
  );
});

test("webrtc: reads an answer with its UDP addresses, and skips TCP and host names", () => {
  const read = readAnswer(
    answer(
      "1 1 UDP 2130706431 192.0.2.1 7610 typ host",
      "2 1 udp 2130706175 2001:db8::1 7611 typ host",
      "3 1 tcp 1518280447 192.0.2.2 9 typ host tcptype active",
      "4 1 UDP 1 0f2d.local 5000 typ host",
      "5 1 UDP 1 192.0.2.3 70000 typ host",
    ),
  );
  expect(read).toEqual({
    fingerprint: FINGERPRINT,
    ufrag: "name",
    password: "secret",
    candidates: [
      { address: "192.0.2.1", port: 7610 },
      { address: "2001:db8::1", port: 7611 },
    ],
  });
  expect(
    readAnswer(answer(...Array.from({ length: 40 }, (_, index) => `1 1 UDP 1 10.0.0.${index} 5 typ host`))).candidates,
  ).toHaveLength(16);
});

test.each([
  ["no address", answer(), "no address"],
  ["no password", answer("1 1 UDP 1 10.0.0.1 5 typ host").replace(/a=ice-pwd.*\r\n/, ""), "no ice-pwd"],
  ["no fingerprint", answer("1 1 UDP 1 10.0.0.1 5 typ host").replace(/a=fingerprint.*\r\n/, ""), "no fingerprint"],
  ["another hash", answer("1 1 UDP 1 10.0.0.1 5 typ host").replace("sha-256", "sha-1"), "none of SHA-256"],
])("webrtc: refuses an answer with %s", (_, sdp, reason) => {
  expect(() => readAnswer(sdp)).toThrow(reason);
});
