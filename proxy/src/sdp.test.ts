import { tameOffer, withCandidate } from "./sdp";

const lines = (...text: string[]) => text.map((line) => `${line}\r\n`).join("");

test("sdp: an offer keeps its candidates with UDP addresses, 16 at most, and loses names and TCP", () => {
  const offer = lines(
    "v=0",
    "a=candidate:1 1 udp 2113937151 0f2d.local 50000 typ host",
    "a=candidate:2 1 UDP 2113937151 10.0.0.1 50000 typ host",
    "a=candidate:3 1 tcp 1518280447 10.0.0.1 9 typ host tcptype active",
    "a=candidate:4 1 udp 2113937151 fd00::1 50000 typ host",
    "a=mid:0",
  );
  expect(tameOffer(offer)).toBe(lines(
    "v=0", "a=candidate:2 1 UDP 2113937151 10.0.0.1 50000 typ host", "a=candidate:4 1 udp 2113937151 fd00::1 50000 typ host", "a=mid:0",
  ));
  const many = lines(...Array.from({ length: 17 }, (_, index) => `a=candidate:${index} 1 udp 1 10.0.0.${index} 5 typ host`));
  expect(tameOffer(many).split("\r\n").filter(Boolean)).toHaveLength(16);
});

test("sdp: the public candidate stands before the end of candidates, once", () => {
  const answer = lines("v=0", "a=candidate:1 1 UDP 2114977791 172.17.0.2 7610 typ host", "a=end-of-candidates");
  const extended = withCandidate(answer, "198.51.100.7", 7611);
  expect(extended.split("\r\n").slice(2)).toEqual(["a=candidate:99 1 UDP 1694498815 198.51.100.7 7611 typ host", "a=end-of-candidates", ""]);
  expect(withCandidate(extended, "198.51.100.7", 7611)).toBe(extended);
  expect(withCandidate(lines("v=0"), "::1", 1)).toMatch(/^v=0\r\na=candidate:99 1 UDP \d+ ::1 1 typ host\r\n$/);
});
