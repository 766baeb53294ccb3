import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { createNodeClient } from "../node";

let origo: Server;
const asked: string[] = [];

beforeAll(async () => {
  origo = createServer(({ url = "" }) => void asked.push(url.replace(/\?.*/, "")));
  await new Promise<void>((resolve) => origo.listen(0, "127.0.0.1", resolve));
});

test("manifest: it is asked for together with Origo's list, so it costs a new client no round trip", async () => {
  const origoUrl = `http://127.0.0.1:${(origo.address() as AddressInfo).port}`;
  const client = createNodeClient({ origoUrl, reportRecords: false, settings: { directoryTimeoutMs: 60_000 } });
  const publication = `${"A".repeat(43)}/film`;
  const { head } = client.get(`${origoUrl}/v/${publication}/film.mp4`, { mode: "coded" });
  const failed = expect(head).rejects.toThrow();
  const isAsked = (): boolean => asked.includes("/v1/proxies") && asked.includes(`/v1/publications/${publication}`);
  for (let tries = 0; tries < 200 && !isAsked(); tries++) await new Promise((resolve) => setTimeout(resolve, 10));
  expect(asked).toEqual(expect.arrayContaining(["/v1/proxies", `/v1/publications/${publication}`]));
  origo.close();
  origo.closeAllConnections();
  await failed;
  await client.close();
});
