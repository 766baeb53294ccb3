/** A browser behind an HTTP proxy. Mode `split-http` is the one to choose there: nothing may go beside that proxy. */
import http from "node:http";
import net from "node:net";
import type { AddressInfo } from "node:net";
import {
  inFirefoxWindow,
  openBrowser,
  recordsSince,
  samplePageState,
  startFleet,
  type Fleet,
} from "@tributary/lab-stack";
import { eventually } from "./support";

let fleet: Fleet;
beforeAll(async () => {
  fleet = await startFleet({ proxyCount: 2, ports: "any" });
});
afterAll(() => fleet.stop());

/** A small proxy for http addresses and tunnels. `asked` are the paths that it was asked for in the clear. */
async function startHttpProxy(): Promise<{ port: number; asked: string[]; stop(): void }> {
  const asked: string[] = [];
  const server = http.createServer((request, response) => {
    const { pathname } = new URL(request.url ?? "", "http://none.invalid");
    asked.push(pathname);
    const { method, headers } = request;
    const onward = http.request(request.url ?? "", { method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    onward.on("error", () => response.destroy());
    response.on("close", () => onward.destroy());
    request.pipe(onward);
  });
  server.on("connect", ({ url = "" }, socket: net.Socket) => {
    const [host, port] = url.split(":");
    const onward = net.connect(Number(port), host, () => {
      socket.write("HTTP/1.1 200 OK\r\n\r\n");
      socket.pipe(onward).pipe(socket);
    });
    for (const each of [socket, onward]) each.on("error", () => void [socket.destroy(), onward.destroy()]);
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const stop = (): void => {
    server.close();
    server.closeAllConnections();
  };
  return { port: (server.address() as AddressInfo).port, asked, stop };
}

const firefoxPrefs = (port: number): string => `
  Services.prefs.setBoolPref("network.proxy.allow_hijacking_localhost", true);
  Services.prefs.setCharPref("network.proxy.http", "127.0.0.1");
  Services.prefs.setIntPref("network.proxy.http_port", ${port});
  Services.prefs.setCharPref("network.proxy.ssl", "127.0.0.1");
  Services.prefs.setIntPref("network.proxy.ssl_port", ${port});
  Services.prefs.setIntPref("network.proxy.type", 1);`;

test.each(["chromium", "firefox"] as const)(
  "%s: with mode split-http all shares come through the browser's proxy, and no session is opened beside it",
  async (name) => {
    const proxy = await startHttpProxy();
    const open = await openBrowser({
      name,
      headless: true,
      isDark: false,
      defaults: { origoUrl: fleet.origo.url, mode: "split-http", connections: 2 },
      flags: [`--proxy-server=http://127.0.0.1:${proxy.port}`, "--proxy-bypass-list=<-loopback>"],
    });
    try {
      if (name === "firefox") await inFirefoxWindow(open.browser, firefoxPrefs(proxy.port));
      const startedMs = Date.now();
      const page = await open.newPage();
      await page.goto(`${fleet.sample.url}/hls.html`, { waitUntil: "domcontentloaded" });
      const records = await eventually(
        () => recordsSince(fleet, startedMs),
        (found) => found.length >= 3,
        60,
      );
      expect((await samplePageState(page)).errors).toEqual([]);
      expect(records.length).toBeGreaterThanOrEqual(3);
      expect([...new Set(records.map(({ mode }) => mode))]).toEqual(["split-http"]);
      expect(records.flatMap(({ proxies }) => proxies.map(({ transport }) => transport)).filter(Boolean)).toEqual([]);
      expect(proxy.asked.filter((path) => path === "/v1/sessions")).toEqual([]);
      expect(proxy.asked.filter((path) => path === "/v1/fetch").length).toBeGreaterThan(0);
    } finally {
      await open.close();
      proxy.stop();
    }
  },
);
