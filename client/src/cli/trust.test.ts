/** Certificates and versions of TLS, by real processes at real servers. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import http from "node:http";
import http2 from "node:http2";
import https, { type ServerOptions } from "node:https";
import net, { type AddressInfo, type Server } from "node:net";
import path from "node:path";
import type { Duplex } from "node:stream";
import { get, makeFolder } from "../../test/command";

const folder = makeFolder();
const at = (name: string): string => path.join(folder.path, name);
const servers: Server[] = [];

/** Makes a certificate that is its own authority. */
function certificate(name: string, host: string, days: number): { key: Buffer; cert: Buffer } {
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", at(`${name}.key`)];
  const subject = ["-subj", "/CN=test", "-addext", `subjectAltName=${host}`];
  const make = (...words: string[]) => execFileSync("openssl", words, { stdio: "ignore" });
  make("req", "-new", ...key, ...subject, "-out", at(`${name}.csr`));
  const signed = ["-signkey", at(`${name}.key`), "-copy_extensions", "copy", "-days", String(days)];
  make("x509", "-req", "-in", at(`${name}.csr`), ...signed, "-out", at(`${name}.pem`));
  return { key: readFileSync(at(`${name}.key`)), cert: readFileSync(at(`${name}.pem`)) };
}

async function serve(options: ServerOptions, isHttp2 = false): Promise<string> {
  const answer = (_request: unknown, response: { end(text: string): void }): void => response.end("hello");
  const server = isHttp2
    ? http2.createSecureServer({ ...options, allowHTTP1: false }, answer)
    : https.createServer(options, answer);
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `https://127.0.0.1:${(server.address() as AddressInfo).port}/f`;
}

let urls: Record<"good" | "other" | "expired" | "http2" | "old", string>;
beforeAll(async () => {
  const good = certificate("good", "IP:127.0.0.1", 30);
  const old = { ...good, minVersion: "TLSv1", maxVersion: "TLSv1.1", ciphers: "DEFAULT@SECLEVEL=0" } as const;
  urls = {
    good: await serve(good),
    other: await serve(certificate("other", "DNS:other.example", 30)),
    expired: await serve(certificate("expired", "IP:127.0.0.1", -1)),
    http2: await serve(good, true),
    old: await serve(old),
  };
});
afterAll(() => {
  for (const server of servers) server.close();
  folder.remove();
});

const ask = (...words: string[]) => get([...words, "-o", "-", "-q", "--retry", "0"], { cwd: folder.path });

test.each([
  ["good", [], /not trusted: the server has signed it itself \(DEPTH_ZERO_SELF_SIGNED_CERT\)\. --cacert FILE names/],
  ["good", ["--cacert", "other.pem"], /not trusted: the server has signed it itself/],
  ["other", ["--cacert", "other.pem"], /127\.0\.0\.1:\d+ is not trusted: it is for another host, namely DNS:other\.ex/],
  ["expired", ["--cacert", "expired.pem"], /it has expired \(CERT_HAS_EXPIRED\)\. The option --insecure takes/],
  ["old", ["--insecure"], /a version of TLS that is too old \(ERR_SSL_/],
  ["good", ["--cacert", "good.key"], /good\.key has no certificate in PEM/],
  ["good", ["--cacert", "missing.pem"], /Cannot read missing\.pem: it does not exist/],
] as const)("TLS: %s with %j fails with a sentence", async (name, words, sentence) => {
  const { status, stdout, stderr } = await ask(urls[name], ...words);
  expect({ status, text: stdout.toString() }).toEqual({ status: 1, text: "" });
  expect(stderr).toMatch(sentence);
});

test.each([
  ["good", ["--cacert", "good.pem"]],
  ["http2", ["--cacert", "good.pem"]],
  ["http2", ["-k"]],
  ["good", ["-k"]],
  ["other", ["-k"]],
  ["expired", ["--insecure"]],
] as const)("TLS: %s with %j works", async (name, words) => {
  const { status, stdout, stderr } = await ask(urls[name], ...words);
  expect({ status, stderr, text: stdout.toString() }).toEqual({ status: 0, stderr: "", text: "hello" });
});

test("TLS: through an HTTP proxy the sentence is the same", async () => {
  const proxy = http.createServer().on("connect", ({ url = "" }: { url?: string }, socket: Duplex) => {
    const [host, port] = url.split(":");
    const origin = net.connect(Number(port), host, () => socket.write("HTTP/1.1 200 OK\r\n\r\n"));
    for (const each of [origin, socket]) each.on("error", () => undefined);
    origin.pipe(socket).pipe(origin);
  });
  servers.push(proxy);
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  const env = { https_proxy: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`, no_proxy: "" };
  const through = (...words: string[]) => get([urls.good, "-q", "--retry", "0", ...words], { cwd: folder.path, env });
  expect((await through()).stderr).toMatch(/not trusted: the server has signed it itself .* --cacert FILE names/);
  expect((await through("--cacert", "good.pem")).stdout.toString()).toBe("hello");
});
