import { networkOf } from "./network";

test.each([
  ["198.51.100.7", "198.51.100.0/24"],
  ["::ffff:198.51.100.7", "198.51.100.0/24"],
  ["2001:db8:7:1::5", "2001:db8:7::/48"],
  ["2001:0db8::5", "2001:db8:0::/48"],
  ["2001:db8:7:1:2:3:4:5", "2001:db8:7::/48"],
  ["::1", "0:0:0::/48"],
])("network of %s is %s", (address, network) => expect(networkOf(address)).toBe(network));
