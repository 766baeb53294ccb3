/** Which addresses direct requests may reach once strangers can cause them. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { Agent, request } from "undici";
import { connectOrigin } from "./origin-connect";
import { guardOrigins, isPublicAddress } from "./origin-guard";

test.each([
  ["93.184.216.34", true],
  ["2606:4700::1111", true],
  ["127.0.0.1", false],
  ["10.1.2.3", false],
  ["172.31.255.255", false],
  ["172.32.0.1", true],
  ["192.168.0.1", false],
  ["169.254.169.254", false],
  ["100.64.0.1", false],
  ["0.0.0.0", false],
  ["224.0.0.1", false],
  ["::1", false],
  ["::", false],
  ["fd00::1", false],
  ["fe80::1", false],
  ["::ffff:10.0.0.1", false],
  ["64:ff9b::a00:1", false],
  ["not an address", false],
])("%s: public is %s", (address, expected) => expect(isPublicAddress(address)).toBe(expected));

describe("connections", () => {
  const agent = new Agent({ connect: connectOrigin });
  let server: Server;
  let port: number;
  beforeAll(async () => {
    server = createServer((_request, response) => response.end("here"));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    port = (server.address() as AddressInfo).port;
  });
  afterAll(async () => {
    await agent.destroy();
    server.close();
  });
  const ask = async (host: string) => {
    const { body } = await request(`http://${host}:${port}/`, { dispatcher: agent, reset: true });
    return body.text();
  };

  test("all are allowed until the guard is set, and then those that are named", async () => {
    expect(await ask("127.0.0.1")).toBe("here");
    guardOrigins([]);
    await expect(ask("127.0.0.1")).rejects.toThrow(/private network: got 127\.0\.0\.1\. .*--private-host 127\.0\.0\.1/);
    await expect(ask("localhost")).rejects.toThrow(/private network: got localhost, which is (127\.0\.0\.1|::1)\./);
    await expect(ask("[::1]")).rejects.toThrow(/private network: got ::1\./);
    // Other spellings of the same address, as URLs read them.
    await expect(ask("2130706433")).rejects.toThrow(/private network/);
    await expect(ask("[::ffff:127.0.0.1]")).rejects.toThrow(/private network/);
    guardOrigins(["Localhost"]);
    expect(await ask("localhost")).toBe("here");
    await expect(ask("127.0.0.1")).rejects.toThrow(/private network/);
  });
});
