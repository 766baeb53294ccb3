/** Tests TLS to a vetted address: the certificate must match the name in the URL, not the address. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import http from "node:http";
import https from "node:https";
import net, { type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import type { TLSSocket } from "node:tls";
import { Egress } from "./fetch";
import { parseHostRule } from "./policy";

const folder = mkdtempSync(path.join(tmpdir(), "tributary-tls-"));
let server: https.Server;
let port: number;
let cert: Buffer;
let clear: string;
let clearServer: http.Server;
let names: (string | false | null | undefined)[] = [];

beforeAll(async () => {
  const [keyFile, certFile] = [path.join(folder, "key"), path.join(folder, "cert")];
  const subject = ["-subj", "/CN=video.test", "-addext", "subjectAltName=DNS:video.test"];
  execFileSync(
    "openssl",
    [
      "req",
      "-x509",
      "-newkey",
      "ec",
      "-pkeyopt",
      "ec_paramgen_curve:P-256",
      "-nodes",
      "-days",
      "2",
      "-keyout",
      keyFile,
      "-out",
      certFile,
      ...subject,
    ],
    { stdio: "pipe" },
  );
  cert = readFileSync(certFile);
  server = https.createServer({ key: readFileSync(keyFile), cert }, (request, response) => {
    names.push((request.socket as TLSSocket).servername);
    if (request.url === "/away") return response.writeHead(302, { location: clear }).end();
    response.end("secure");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  port = (server.address() as AddressInfo).port;
  clearServer = http.createServer((_request, response) => void response.end("clear"));
  await new Promise<void>((resolve) => clearServer.listen(0, "127.0.0.1", resolve));
  clear = `http://video.test:${(clearServer.address() as AddressInfo).port}/`;
});
afterAll(() => {
  for (const each of [server, clearServer]) {
    each.closeAllConnections();
    each.close();
  }
  rmSync(folder, { recursive: true });
});

async function get(host: string, ca: Buffer | undefined, path = "/", pageOrigin?: string): Promise<string> {
  const allowPrivate = [`${host}:${port}`, new URL(clear).host].map((text) => parseHostRule(text)!);
  const policy = { allow: [], allowPrivate, ownAddresses: new Set<string>() };
  const egress = new Egress({ policy, resolve: async () => ["127.0.0.1"], ...(ca ? { tls: { ca } } : {}) });
  const { signal } = new AbortController();
  try {
    const url = `https://${host}:${port}${path}`;
    const response = await egress.fetch(url, undefined, signal, undefined, { pageOrigin });
    let text = "";
    for await (const piece of response.body) text += String(Buffer.from(piece));
    return text;
  } finally {
    egress.close();
  }
}

test("tls: the name in the URL is requested and checked", async () => {
  names = [];
  expect(await get("video.test", cert)).toBe("secure");
  expect(names).toEqual(["video.test"]);
});

test("tls: a wrong name, an address or an unknown authority is refused before a request is sent", async () => {
  names = [];
  for (const [host, ca] of [
    ["other.test", cert],
    ["127.0.0.1", cert],
    ["video.test", undefined],
  ] as const) {
    await expect(get(host, ca)).rejects.toMatchObject({ rejection: { kind: "originUnreachable" } });
  }
  expect(names).toEqual([]);
});

test("tls: a redirect from https to http is followed, but not for a web page", async () => {
  expect(await get("video.test", cert, "/away")).toBe("clear");
  for (const page of ["https://page.test", "http://page.test"]) {
    const refused = get("video.test", cert, "/away", page);
    await expect(refused).rejects.toMatchObject({
      rejection: {
        kind: "badRedirect",
        message: expect.stringContaining("from https to http: video.test:") as unknown,
      },
    });
  }
});

test("tls: a connection to a silent origin ends with the request (100 ms)", async () => {
  const silent = net.createServer();
  const gone = new Promise<void>((resolve) => {
    silent.once("connection", (socket) =>
      socket
        .resume()
        .on("error", () => undefined)
        .once("close", () => resolve()),
    );
  });
  await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
  const host = `video.test:${(silent.address() as AddressInfo).port}`;
  const policy = { allow: [], allowPrivate: [parseHostRule(host)!], ownAddresses: new Set<string>() };
  const egress = new Egress({ policy, resolve: async () => ["127.0.0.1"], times: { headMs: 100 } });
  const startMs = performance.now();
  await expect(egress.fetch(`https://${host}/`, undefined, new AbortController().signal)).rejects.toMatchObject({
    rejection: { kind: "originTimeout" },
  });
  await gone;
  expect(performance.now() - startMs).toBeLessThan(3000);
  egress.close();
  silent.close();
});
