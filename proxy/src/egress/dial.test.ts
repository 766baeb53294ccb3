import http from "node:http";
import type { AddressInfo } from "node:net";
import { VettedAgents } from "./dial";

test("dial: at most 256 idle connections are kept for all origins together", async () => {
  let open = 0;
  const servers = await Promise.all(
    Array.from({ length: 20 }, async () => {
      const server = http.createServer((_request, response) => void setTimeout(() => response.end("x"), 200));
      server.on("connection", (socket) => {
        open++;
        socket.once("close", () => open--);
      });
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      return server;
    }),
  );
  const agents = new VettedAgents();
  const ask = (server: http.Server): Promise<void> =>
    new Promise((resolve, reject) => {
      const vetted = { vettedAddresses: ["127.0.0.1"], unwanted: new AbortController().signal };
      const { port } = server.address() as AddressInfo;
      const options = { agent: agents.of("http:"), host: "127.0.0.1", port, ...vetted };
      http.get(options, (response) => response.resume().once("end", resolve)).once("error", reject);
    });
  await Promise.all(servers.flatMap((server) => Array.from({ length: 16 }, () => ask(server))));
  for (let tries = 0; tries < 100 && open > 256; tries++) await new Promise((resolve) => setTimeout(resolve, 20));
  expect(open).toBeLessThanOrEqual(256);
  await ask(servers[19]!);
  agents.destroy();
  for (const server of servers) server.close();
});
