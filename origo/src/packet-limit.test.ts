/** Tests that connections of socket.io that end at once do no harm. Their limits are tested with the proxies' link. */
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { addressOf } from "./packet-limit";
import { startOrigo } from "./server";

const UPGRADE = [
  "GET /socket.io/?EIO=4&transport=websocket HTTP/1.1",
  ...["Host: origo", "Connection: Upgrade", "Upgrade: websocket"],
  ...["Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "", ""],
].join("\r\n");

test("a connection without an address counts under an empty one, or under the one that a balancer names", () => {
  expect(addressOf({}, undefined, 0)).toBe("");
  expect(addressOf({}, undefined, 2)).toBe("");
  expect(addressOf({ "x-forwarded-for": "192.0.2.1, 192.0.2.2" }, undefined, 1)).toBe("192.0.2.2");
});

test("Origo goes on when 500 strangers reset their connections at once", async () => {
  const folder = await mkdtemp(join(tmpdir(), "origo-reset-"));
  const origo = await startOrigo({ host: "127.0.0.1", port: 0, dataDir: folder, dashboardDir: folder, login: "off" });
  try {
    for (let round = 0; round < 10; round++) {
      const gone = Array.from({ length: 50 }, async (_, index) => {
        const socket = connect(Number(new URL(origo.url).port), "127.0.0.1").on("error", () => undefined);
        await once(socket, "connect");
        await new Promise<void>((done) => socket.write(UPGRADE, () => done()));
        if (index % 2 === 0) await new Promise((done) => setImmediate(done));
        socket.resetAndDestroy();
      });
      await Promise.all(gone);
      expect((await fetch(`${origo.url}/healthz`)).status).toBe(200);
    }
  } finally {
    await origo.close();
    await rm(folder, { recursive: true });
  }
});
