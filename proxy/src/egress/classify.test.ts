import { canonicalAddress, classifyAddress, type AddressClass } from "./classify";

const TABLE: [address: string, kind: AddressClass][] = [
  // IPv4: first and last of each range, and the neighbours just outside
  ["0.0.0.0", "unspecified"], ["0.255.255.255", "unspecified"], ["1.0.0.0", "public"],
  ["9.255.255.255", "public"], ["10.0.0.0", "private"], ["10.255.255.255", "private"], ["11.0.0.0", "public"],
  ["100.63.255.255", "public"], ["100.64.0.0", "carrierGradeNat"], ["100.127.255.255", "carrierGradeNat"], ["100.128.0.0", "public"],
  ["126.255.255.255", "public"], ["127.0.0.0", "loopback"], ["127.0.0.1", "loopback"], ["127.255.255.255", "loopback"], ["128.0.0.0", "public"],
  ["169.253.255.255", "public"], ["169.254.0.0", "linkLocal"], ["169.254.169.254", "linkLocal"], ["169.254.255.255", "linkLocal"], ["169.255.0.0", "public"],
  ["172.15.255.255", "public"], ["172.16.0.0", "private"], ["172.31.255.255", "private"], ["172.32.0.0", "public"],
  ["191.255.255.255", "public"], ["192.0.0.0", "reserved"], ["192.0.0.255", "reserved"], ["192.0.1.0", "public"],
  ["192.0.1.255", "public"], ["192.0.2.0", "documentation"], ["192.0.2.255", "documentation"], ["192.0.3.0", "public"],
  ["192.88.98.255", "public"], ["192.88.99.0", "reserved"], ["192.88.99.255", "reserved"], ["192.88.100.0", "public"],
  ["192.167.255.255", "public"], ["192.168.0.0", "private"], ["192.168.255.255", "private"], ["192.169.0.0", "public"],
  ["198.17.255.255", "public"], ["198.18.0.0", "benchmarking"], ["198.19.255.255", "benchmarking"], ["198.20.0.0", "public"],
  ["198.51.99.255", "public"], ["198.51.100.0", "documentation"], ["198.51.100.255", "documentation"], ["198.51.101.0", "public"],
  ["203.0.112.255", "public"], ["203.0.113.0", "documentation"], ["203.0.113.255", "documentation"], ["203.0.114.0", "public"],
  ["223.255.255.255", "public"], ["224.0.0.0", "multicast"], ["239.255.255.255", "multicast"], ["240.0.0.0", "reserved"],
  ["255.255.255.254", "reserved"], ["255.255.255.255", "broadcast"],
  // IPv4 in other notations
  ["2130706433", "loopback"], ["0x7f000001", "loopback"], ["0177.0.0.1", "loopback"], ["127.1", "invalid"], ["0x7f.1", "invalid"],
  // IPv6
  ["::", "unspecified"], ["::1", "loopback"], ["::2", "translated"], ["::7f00:1", "translated"], ["::1:0:0", "reserved"],
  ["::fffe:ffff:ffff", "reserved"], ["::ffff:0.0.0.0", "unspecified"], ["::ffff:127.0.0.1", "loopback"], ["::ffff:7f00:1", "loopback"],
  ["::ffff:10.1.2.3", "private"], ["::ffff:8.8.8.8", "public"], ["::ffff:255.255.255.255", "broadcast"], ["::1:0:0:0", "reserved"],
  ["::ffff:0:127.0.0.1", "translated"], ["::ffff:0:8.8.8.8", "translated"],
  ["64:ff9a:ffff:ffff:ffff:ffff:ffff:ffff", "reserved"], ["64:ff9b::7f00:1", "translated"], ["64:ff9b::a9fe:a9fe", "translated"],
  ["64:ff9b::808:808", "public"], ["64:ff9b::1:0:0", "reserved"],
  ["64:ff9b:1::", "translated"], ["64:ff9b:1:ffff:ffff:ffff:ffff:ffff", "translated"], ["64:ff9b:2::", "reserved"],
  ["100::", "reserved"], ["1fff:ffff::", "reserved"], ["2000::", "public"],
  ["2000:ffff:ffff::", "public"], ["2001::", "translated"], ["2001:0:ffff::1", "translated"], ["2001:1::", "reserved"],
  ["2001:1ff:ffff::", "reserved"], ["2001:200::", "public"],
  ["2001:db7:ffff::", "public"], ["2001:db8::", "documentation"], ["2001:db8:ffff::", "documentation"], ["2001:db9::", "public"],
  ["2001:ffff::", "public"], ["2002::", "translated"], ["2002:7f00:1::", "translated"], ["2002:808:808::", "translated"], ["2003::", "public"],
  ["3ffe:ffff::", "public"], ["3fff::", "documentation"], ["3fff:fff:ffff::", "documentation"], ["3fff:1000::", "public"],
  ["3fff:ffff:ffff::", "public"], ["4000::", "reserved"], ["5f00::", "reserved"], ["fbff:ffff::", "reserved"],
  ["fc00::", "uniqueLocal"], ["fd00::2", "uniqueLocal"], ["fdff:ffff::", "uniqueLocal"], ["fe00::", "reserved"],
  ["fe7f:ffff::", "reserved"], ["fe80::", "linkLocal"], ["fe80::1%eth0", "linkLocal"], ["febf:ffff::", "linkLocal"], ["fec0::", "reserved"],
  ["feff:ffff::", "reserved"], ["ff00::", "multicast"], ["ff02::1", "multicast"], ["ffff:ffff::", "multicast"],
  // not addresses
  ["", "invalid"], ["localhost", "invalid"], ["256.0.0.1", "invalid"], ["1.2.3.4.5", "invalid"], ["::g", "invalid"], ["[::1]", "invalid"],
];

test.each(TABLE)("egress: %s is %s", (address, kind) => {
  expect(classifyAddress(address)).toBe(kind);
});

test("egress: an address of this machine is own in every notation, its neighbour is public", () => {
  const own = new Set(["8.8.4.4", canonicalAddress("2606:4700::0:1")!]);
  expect(classifyAddress("8.8.4.4", own)).toBe("own");
  expect(classifyAddress("::ffff:8.8.4.4", own)).toBe("own");
  expect(classifyAddress("2606:4700:0::1", own)).toBe("own");
  expect(classifyAddress("8.8.4.5", own)).toBe("public");
});
