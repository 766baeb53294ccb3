import dgram from "node:dgram";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { findPublished } from "./published";

const open: { close(): void }[] = [];
afterEach(() => {
  for (const one of open.splice(0)) one.close();
});

/** Opens a TCP port that answers every request with `text`: any free one, or the first free one from `from`. */
async function answering(text: string, from = 0): Promise<number> {
  const server = http.createServer((_request, response) => response.end(text));
  const listening = new Promise<boolean>((resolve) =>
    server.once("error", () => resolve(false)).listen(from, "127.0.0.1", () => resolve(true)),
  );
  if (!(await listening)) return await answering(text, from + 1);
  open.push({ close: () => (server.closeAllConnections(), server.close()) });
  return (server.address() as AddressInfo).port;
}

async function freeUdpPort(): Promise<number> {
  const socket = dgram.createSocket("udp4");
  await new Promise<void>((resolve) => socket.bind(0, "127.0.0.1", resolve));
  const { port } = socket.address();
  await new Promise<void>((resolve) => socket.close(() => resolve()));
  return port;
}

const find = (host: string, first: number, last: number, nonce: string, udpPort: number) =>
  findPublished({ range: { host, first, last }, nonce, host: "127.0.0.1", udpPorts: [udpPort], tries: 2, waitMs: 150 });

test("published: the nonce of another proxy is ignored, and the UDP port is free again afterwards", async () => {
  const other = await answering("other");
  const mine = await answering("mine", other + 1);
  expect(await find("127.0.0.1", other, mine, "mine", mine)).toEqual({
    address: "127.0.0.1",
    tcpPort: mine,
    udpPorts: [mine],
  });
  const again = dgram.createSocket("udp4");
  open.push(again);
  await new Promise<void>((resolve, reject) => again.once("error", reject).bind(mine, "127.0.0.1", resolve));
});

test("published: the error says which kind of port was not found, or that the name is unknown", async () => {
  const udpPort = await freeUdpPort();
  const other = await answering("other");
  await expect(find("127.0.0.1", other, other, "mine", udpPort)).rejects.toThrow(
    `no TCP port of 127.0.0.1:${other}-${other} leads back to this proxy`,
  );
  const mine = await answering("mine");
  await expect(find("127.0.0.1", mine, mine, "mine", udpPort)).rejects.toThrow(
    `no UDP port of 127.0.0.1:${mine}-${mine}`,
  );
  await expect(find("nowhere.invalid", 1, 1, "mine", udpPort)).rejects.toThrow(
    "the name nowhere.invalid does not resolve",
  );
});

test("published: a taken UDP port is an error at once", async () => {
  const taken = dgram.createSocket("udp4");
  open.push(taken);
  await new Promise<void>((resolve) => taken.bind(0, "127.0.0.1", resolve));
  await expect(find("127.0.0.1", 1, 1, "mine", taken.address().port)).rejects.toThrow("EADDRINUSE");
});
