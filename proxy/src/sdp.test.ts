import { answerSdp, readOffer, tameOffer, withCandidate } from "./sdp";

const lines = (...text: string[]) => text.map((line) => `${line}\r\n`).join("");

test("sdp: an offer keeps at most 16 candidates with UDP addresses, and none with names or TCP", () => {
  const offer = lines(
    "v=0",
    "a=candidate:1 1 udp 2113937151 0f2d.local 50000 typ host",
    "a=candidate:2 1 UDP 2113937151 10.0.0.1 50000 typ host",
    "a=candidate:3 1 tcp 1518280447 10.0.0.1 9 typ host tcptype active",
    "a=candidate:4 1 udp 2113937151 fd00::1 50000 typ host",
    "a=mid:0",
  );
  expect(tameOffer(offer)).toBe(
    lines(
      "v=0",
      "a=candidate:2 1 UDP 2113937151 10.0.0.1 50000 typ host",
      "a=candidate:4 1 udp 2113937151 fd00::1 50000 typ host",
      "a=mid:0",
    ),
  );
  const many = lines(
    ...Array.from({ length: 17 }, (_, index) => `a=candidate:${index} 1 udp 1 10.0.0.${index} 5 typ host`),
  );
  expect(tameOffer(many).split("\r\n").filter(Boolean)).toHaveLength(16);
});

test("sdp: the public candidate is added once, before the end of the candidates", () => {
  const answer = lines("v=0", "a=candidate:1 1 UDP 2114977791 172.17.0.2 7610 typ host", "a=end-of-candidates");
  const extended = withCandidate(answer, "198.51.100.7", 7611);
  expect(extended.split("\r\n").slice(2)).toEqual([
    "a=candidate:99 1 UDP 1694498815 198.51.100.7 7611 typ host",
    "a=end-of-candidates",
    "",
  ]);
  expect(withCandidate(extended, "198.51.100.7", 7611)).toBe(extended);
  expect(withCandidate(lines("v=0"), "::1", 1)).toMatch(/^v=0\r\na=candidate:99 1 UDP \d+ ::1 1 typ host\r\n$/);
});

const HASH = Array.from({ length: 32 }, (_, index) => index.toString(16).padStart(2, "0")).join(":");
const offerOf = (...more: string[]) =>
  lines(
    "v=0",
    "m=application 9 UDP/DTLS/SCTP webrtc-datachannel",
    "a=mid:0",
    `a=fingerprint:sha-256 ${HASH.toUpperCase()}`,
    "a=setup:actpass",
    ...more,
  );

test("sdp: the parts of an offer that an answer needs are read", () => {
  expect(readOffer(offerOf())).toEqual({ mid: "0", fingerprint: Buffer.from(HASH.replaceAll(":", ""), "hex") });
  expect(readOffer(offerOf().replaceAll("\r\n", "\n"))).toMatchObject({ mid: "0" });
});

test.each([
  ["a second section", offerOf("m=audio 9 UDP/TLS/RTP/SAVPF 111")],
  ["no section", offerOf().replace(/^m=.*$/m, "")],
  ["another section", offerOf().replace("m=application", "m=audio")],
  ["an end that waits for a connection", offerOf().replace("actpass", "passive")],
  ["no fingerprint", offerOf().replace(/a=fingerprint.*\r\n/, "")],
  ["another hash", offerOf().replace("sha-256", "sha-1")],
  ["a fingerprint that is too short", offerOf().replace("00:01:", "")],
  ["an invalid mid", offerOf().replace("a=mid:0", "a=mid:0 a=b")],
  ["nothing", ""],
])("sdp: an offer with %s is refused", (_, offer) => {
  expect(readOffer(offer)).toBeUndefined();
});

test("sdp: an answer waits for the connection and has the best candidate first", () => {
  const candidates = [
    { address: "192.0.2.1", port: 7610 },
    { address: "2001:db8::1", port: 7611 },
  ];
  const answer = answerSdp({
    id: "0193a3b2-c6f7-4b62-9f6b-0a1b2c3d4e5f",
    mid: "data",
    ufrag: "u",
    password: "p",
    fingerprint: Buffer.from(HASH.replaceAll(":", ""), "hex"),
    candidates,
  });
  expect(answer.split("\r\n")).toEqual(
    expect.arrayContaining([
      "a=ice-lite",
      "a=mid:data",
      "a=group:BUNDLE data",
      "a=setup:passive",
      `a=fingerprint:sha-256 ${HASH.toUpperCase()}`,
      "a=sctp-port:5000",
      "a=max-message-size:16384",
      "a=candidate:1 1 UDP 2130706431 192.0.2.1 7610 typ host",
      "a=candidate:2 1 UDP 2130706175 2001:db8::1 7611 typ host",
      "a=end-of-candidates",
    ]),
  );
});
