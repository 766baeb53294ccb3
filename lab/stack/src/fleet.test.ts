/** The parts of a fleet that need no processes. test/ tests the whole. */
import net from "node:net";
import { freePort, isPrivateLiteral } from "./fleet";

test.each([
  ["127.0.0.1:7680", true],
  ["127.0.0.1", true],
  ["[::1]:80", true],
  ["localhost:9000", true],
  ["example.org", false],
  ["localhost.example.org", false],
  ["127.0.0.1.example.org:80", false],
  ["*", false],
])("%s names an address itself: %s", (allowed, expected) => expect(isPrivateLiteral(allowed)).toBe(expected));

test("free port: passes over what is taken, by another process or by this run", async () => {
  const server = net.createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const busy = (server.address() as net.AddressInfo).port;
  const taken = new Set<number>();
  const first = await freePort(busy, taken);
  const second = await freePort(busy, taken);
  server.close();
  expect(first).toBeGreaterThan(busy);
  expect(second).toBeGreaterThan(first);
});
