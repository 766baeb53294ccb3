/**
 * `tributary gateway` from outside: mpv, VLC and ffmpeg play through it without a screen, it answers as the origin
 * does, and no web page in Chromium can use it.
 */
import { execFile } from "node:child_process";
import { createServer, request as httpRequest, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import puppeteer from "puppeteer-core";
import { findChromium, mediaDir, recordsOf, sizeBytes, startFleet, type Fleet } from "@tributary/lab-stack";
import { accessLog, eventually, startScript, stopScripts, type RunningScript } from "./support";

let fleet: Fleet;
let script: RunningScript;
let gateway: string;
let folder: string;
let other: Server;
/** An origin with playlists of absolute addresses, cookies, passwords and a redirect. */
let otherHost: string;
const asked: IncomingMessage[] = [];

beforeAll(async () => {
  folder = mkdtempSync(path.join(os.tmpdir(), "tributary-gateway-"));
  await run("ffmpeg", [
    ...["-v", "error", "-i", path.join(mediaDir, "progressive.mp4"), "-c", "copy", "-hls_time", "2"],
    ...["-hls_list_size", "0", "-hls_segment_filename", path.join(folder, "ts-%03d.ts"), path.join(folder, "ts.m3u8")],
  ]);
  other = await startOther();
  otherHost = `127.0.0.1:${(other.address() as AddressInfo).port}`;
  fleet = await startFleet({ proxyCount: 4, ports: "any", allow: [otherHost] });
  script = startScript("client/dist/cli.js", "gateway", "--port", "0", "--origo", fleet.origo.url);
  gateway = /http:\/\/\S+(?=\/ )/.exec(await script.line(/The gateway is/))![0];
});
afterAll(async () => {
  await stopScripts();
  await fleet?.stop();
  other?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** A playlist of TS segments under absolute addresses, and some paths for headers. */
function startOther(): Promise<Server> {
  const server = createServer((request, response) => {
    asked.push(request);
    const base = `http://${request.headers.host}`;
    const name = request.url!.slice(1).replace(/\?.*$/, "");
    if (name === "ts.m3u8") {
      const text = readFileSync(path.join(folder, name), "utf8").replace(/^ts-/gm, `${base}/ts-`);
      // Some servers give a playlist the type of its segments.
      response.writeHead(200, { "content-type": "video/mp2t" });
      // Its beginning may come in parts.
      response.write(text.slice(0, 3), () => setImmediate(() => response.end(text.slice(3))));
    } else if (/^ts-\d+\.ts$/.test(name)) {
      const bytes = readFileSync(path.join(folder, name));
      response
        .writeHead(200, { "content-type": "application/octet-stream", "content-length": bytes.length })
        .end(bytes);
    } else if (name === "moved") response.writeHead(302, { location: "/ts.m3u8?a=/b" }).end();
    else if (name === "away") response.writeHead(302, { location: "https://cdn.example/x" }).end();
    else
      response
        .writeHead(200, { "set-cookie": "id=1; Path=/; Domain=example.org; Secure; HttpOnly", "x-own": "yes" })
        .end(JSON.stringify(request.headers));
  });
  return new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(server)));
}

function run(program: string, words: string[], secondsMax = 60): Promise<{ status: number; output: string }> {
  return new Promise((resolve, reject) => {
    execFile(
      program,
      words,
      { timeout: 1000 * secondsMax, maxBuffer: 32 << 20, env: { ...process.env, HOME: "/tmp" } },
      (error, stdout, stderr) => {
        if (error && error.code === "ENOENT") reject(new Error(`${program} is not installed`));
        else resolve({ status: error ? Number(error.code ?? -1) : 0, output: stdout + stderr });
      },
    );
  });
}

const mirror = (address: string): string => address.replace(/^(https?):\//, `${gateway}/$1`);
const sample = (pathname: string): string => `${fleet.sample.url}${pathname}`;

/** Waits until Origo has a coded record of each address, through at least two proxies and without a fallback. */
async function expectCoded(sinceMs: number, urls: string[], player: RegExp): Promise<void> {
  const records = await recordsOf(fleet, sinceMs, urls);
  for (const url of urls) {
    const record = records.find((each) => each.url === url && each.proxies.filter(({ bytes }) => bytes > 0).length > 1);
    expect(record).toMatchObject({ url, mode: "coded", fallback: null });
    expect(record!.player).toMatch(player);
  }
}

describe("players", () => {
  const md5 = async (input: string, ...words: string[]): Promise<string> => {
    const { status, output } = await run("ffmpeg", [
      ...["-v", "error", ...words, "-i", input, "-map", "0:v:0", "-c", "copy", "-f", "md5", "-"],
    ]);
    expect({ status, output }).toEqual({ status: 0, output: expect.stringMatching(/^MD5=\w+\n$/) as string });
    return output;
  };

  test.each([
    ["HLS of CMAF", "/media/cmaf/master.m3u8", []],
    ["DASH", "/media/cmaf/stream.mpd", []],
    ["HLS of byte ranges", "/static/streaming-playlists/hls/8c5f2d1e-3b7a-4f60-9c1d-2a4e6b8d0f13/master.m3u8", []],
    ["HLS with AES-128", "/aes/media.m3u8", []],
    ["MP4", "/media/progressive.mp4", []],
    ["MP4 from its middle", "/media/progressive.mp4", ["-ss", "12"]],
  ])("ffmpeg reads the same bytes as from the origin: %s", async (_name, pathname, words) => {
    expect(await md5(mirror(sample(pathname)), ...words)).toBe(await md5(sample(pathname), ...words));
  });

  test("ffmpeg: segments come coded, playlists and keys from this machine", async () => {
    const sinceMs = Date.now();
    await md5(mirror(sample("/aes/media.m3u8")));
    const segments = ["001", "006", "012"].map((number) => sample(`/aes/segment-0-${number}.m4s`));
    await expectCoded(sinceMs, segments, /^Lavf/);
    const log = await accessLog(fleet, sinceMs);
    expect(log.find(({ path: at }) => at === "/aes/video.key")?.userAgent).toMatch(/^Lavf/);
    expect(log.find(({ path: at }) => at === "/aes/media.m3u8")?.userAgent).toMatch(/^Lavf/);
  });

  test("ffmpeg: TS under absolute addresses, behind a redirect", async () => {
    const sinceMs = Date.now();
    expect(await md5(mirror(`http://${otherHost}/moved`))).toBe(await md5(`http://${otherHost}/moved`));
    await expectCoded(sinceMs, [`http://${otherHost}/ts-001.ts`], /^Lavf/);
  });

  test("ffmpeg: a live playlist is asked again and again", async () => {
    const sinceMs = Date.now();
    const { status } = await run("ffmpeg", [
      ...["-v", "error", "-i", mirror(sample("/live/master.m3u8")), "-t", "10", "-c", "copy", "-f", "null", "-"],
    ]);
    expect(status).toBe(0);
    const lists = (await accessLog(fleet, sinceMs)).filter(({ path: at }) => at === "/live/media.m3u8");
    expect(lists.length).toBeGreaterThan(1);
  });

  test.each(["/media/cmaf/master.m3u8", "/media/cmaf/stream.mpd", "/media/progressive.mp4"])(
    "mpv plays %s",
    async (pathname) => {
      const sinceMs = Date.now();
      const words = ["--no-config", "--vo=null", "--ao=null", "--untimed", "--frames=20"];
      // Its demuxer loses its place when it seeks in HLS of CMAF, with or without the gateway.
      const from = pathname.endsWith(".m3u8") ? [] : ["--start=9"];
      const { status, output } = await run("mpv", [...words, ...from, mirror(sample(pathname))]);
      expect(output).toMatch(/Video.*--vid=1[^]*Exiting\.\.\. \(End of file\)/);
      expect(status).toBe(0);
      if (pathname.endsWith(".mp4")) await expectCoded(sinceMs, [sample(pathname)], /mpv/);
    },
  );

  test.each(["/media/cmaf/master.m3u8", "/media/cmaf/stream.mpd", "/media/progressive.mp4"])(
    "VLC plays %s",
    async (pathname) => {
      const sinceMs = Date.now();
      const words = ["-I", "dummy", "--vout=dummy", "--aout=dummy", "--no-color", "--play-and-exit", "-vv"];
      const until = pathname.endsWith(".mp4") ? ["--start-time=9", "--stop-time=11"] : ["--run-time=2"];
      const [program, ...enter] = asNobody("vlc");
      const { output } = await run(program!, [...enter, ...words, ...until, mirror(sample(pathname)), "vlc://quit"]);
      expect(output).toMatch(/Received first picture/);
      const first = pathname.endsWith(".mp4") ? pathname : "/media/cmaf/init-3.m4s";
      await expectCoded(sinceMs, [sample(first)], /^VLC/);
    },
  );

  /** VLC does not run as root. */
  function asNobody(program: string): string[] {
    if (process.getuid?.() !== 0) return [program];
    return ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", program];
  }
});

interface Answer {
  status: number;
  headers: IncomingMessage["headers"];
  body: Buffer;
}

/** One request, as it is written. */
function ask(address: string, headers: Record<string, string> = {}, method = "GET"): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(address, { method, headers, agent: false }, (response) => {
      const pieces: Buffer[] = [];
      response.on("data", (piece: Buffer) => pieces.push(piece));
      response.on("end", () =>
        resolve({ status: response.statusCode!, headers: response.headers, body: Buffer.concat(pieces) }),
      );
      response.on("error", reject);
    });
    request.on("error", reject).end();
  });
}

describe("answers", () => {
  const file = (): string => sample("/__size/3000000.mp4");
  const CASES: [string, Record<string, string>, string][] = [
    ["the whole", {}, "GET"],
    ["from the start", { range: "bytes=0-" }, "GET"],
    ["the first byte", { range: "bytes=0-0" }, "GET"],
    ["from the middle", { range: "bytes=1000000-" }, "GET"],
    ["a closed range", { range: "bytes=1000-1999999" }, "GET"],
    ["the end", { range: "bytes=-1000" }, "GET"],
    ["beyond the end", { range: "bytes=3000000-" }, "GET"],
    ["several ranges", { range: "bytes=0-1,5-6" }, "GET"],
    ["If-Range of this version", { range: "bytes=5-", "if-range": '"size-3000000"' }, "GET"],
    ["If-Range of another version", { range: "bytes=5-", "if-range": '"other"' }, "GET"],
    ["HEAD", {}, "HEAD"],
  ];

  test.each(CASES)("%s: status, range, length and bytes are the origin's, twice", async (_name, headers, method) => {
    const wanted = await ask(file(), headers, method);
    for (let time = 0; time < 2; time++) {
      const got = await ask(mirror(file()), headers, method);
      const kept = ["content-range", "content-length", "content-type", "etag", "accept-ranges"];
      const of = (answer: Answer) => [answer.status, ...kept.map((name) => answer.headers[name])];
      expect(of(got)).toEqual(of(wanted));
      expect(Buffer.compare(got.body, wanted.body)).toBe(0);
    }
  });

  test("a stored copy is confirmed with 304", async () => {
    const first = await ask(mirror(sample("/media/cmaf/master.m3u8")));
    const again = await ask(mirror(sample("/media/cmaf/master.m3u8")), { "if-none-match": first.headers.etag! });
    expect(again).toMatchObject({ status: 304, body: Buffer.alloc(0) });
  });

  test("the player's headers go to the origin, and such a request to it alone", async () => {
    const headers = {
      cookie: "a=1",
      authorization: "Basic eDp5",
      "user-agent": "own/1",
      referer: `${gateway}/https/a.b/c`,
    };
    const { body, headers: got } = await ask(mirror(`http://${otherHost}/headers.mp4`), headers);
    const { host } = new URL(gateway);
    expect(JSON.parse(body.toString())).toMatchObject({ ...headers, referer: "https://a.b/c", host: otherHost });
    expect(body.toString()).not.toContain(host);
    expect(got["set-cookie"]).toEqual([`id=1; Path=/http/${otherHost}/; HttpOnly`]);
    const before = asked.length;
    await ask(mirror(`http://${otherHost}/ts-000.ts`), { cookie: "secret=1" });
    expect(asked.slice(before).map((request) => request.headers.cookie)).toEqual(["secret=1"]);
  });

  test.each([
    ["/moved", () => `${gateway}/http/${otherHost}/ts.m3u8?a=/b`],
    ["/away", () => `${gateway}/https/cdn.example/x`],
  ])("the redirect of %s leads through the gateway", async (pathname, location) => {
    const { status, headers } = await ask(mirror(`http://${otherHost}${pathname}`));
    expect([status, headers.location]).toEqual([302, location()]);
  });

  test.each([
    ["an unknown path", "/ftp/host/", 400, /path is not known.*ftp/],
    ["a port that nobody has", "/http/127.0.0.1:1/", 502, /127\.0\.0\.1:1 did not answer.*ECONNREFUSED/],
    ["a name that nobody has", "/http/nobody.invalid/", 502, /nobody\.invalid did not answer/],
    ["a gateway of the gateway", "/http/127.0.0.1:PORT/https/a.b/", 508, /gateway's own/],
    ["a gateway of the gateway by name", "/http/localhost:PORT/", 508, /gateway's own/],
    ["a status of the origin", "/http/SAMPLE/__status/410", 410, /status 410/],
  ])("%s: a clear answer", async (_name, pathname, status, message) => {
    const [port, host] = [new URL(gateway).port, new URL(fleet.sample.url).host];
    const answer = await ask(`${gateway}${pathname.replace("PORT", port).replace("SAMPLE", host)}`);
    expect(answer.status).toBe(status);
    expect(answer.body.toString()).toMatch(message);
  });

  test("a player that goes away ends the download, and 30 players at once are served", async () => {
    const sinceMs = Date.now();
    const large = sample("/__size/500000000.mp4");
    for (const range of ["bytes=0-", "bytes=1000000-"])
      await new Promise<void>((resolve) => {
        const request = httpRequest(mirror(large), { headers: { range }, agent: false }, (response) =>
          response.once("data", () => void (request.destroy(), resolve())),
        );
        request.end();
      });
    const records = await eventually(
      () => recordsOf(fleet, sinceMs, [large]),
      (found) => found.length > 0,
    );
    expect(records.map(({ outcome }) => outcome)).toContain("aborted");
    const sent = (await accessLog(fleet, sinceMs)).reduce((sum, { bytes }) => sum + bytes, 0);
    // Four proxies fetch two ranges of 8 MiB each for either request.
    expect(sent).toBeLessThan(250_000_000);
    const sizes = Array.from({ length: 30 }, (_, index) => 300_000 + index);
    const bodies = await Promise.all(sizes.map((bytes) => ask(mirror(sample(`/__size/${bytes}.mp4`)))));
    bodies.forEach(({ body }, index) => expect(Buffer.compare(body, sizeBytes(0, sizes[index]!))).toBe(0));
  });

  test("a port in use is named, and SIGTERM ends the gateway", async () => {
    const { port } = new URL(gateway);
    const second = startScript("client/dist/cli.js", "gateway", "--port", port, "--origo", fleet.origo.url);
    await second.line(new RegExp(`Port ${port} of 127\\.0\\.0\\.1 is in use.*--port`));
    expect(await second.ended).toBe(1);
    const third = startScript("client/dist/cli.js", "gateway", "--port", "0", "--origo", fleet.origo.url);
    const own = /http:\/\/\S+(?=\/ )/.exec(await third.line(/The gateway is/))![0];
    const open = ask(`${own}/http/${new URL(fleet.sample.url).host}/__size/500000000`).catch(() => undefined);
    third.signal("SIGTERM");
    expect(await third.ended).toBe(143);
    await open;
  });

  test("a gateway for other machines needs its token, and keeps them out of private networks", async () => {
    const { host, port } = new URL(fleet.sample.url);
    const words = ["gateway", "--port", "0", "--host", "0.0.0.0", "--origo", fleet.origo.url, "--private-host"];
    const open = startScript("client/dist/cli.js", ...words, "localhost");
    const line = await open.line(/The gateway is/);
    expect(open.output()).toMatch(/Other machines can reach this gateway/);
    const own = new URL(/http:\/\/\S+/.exec(line)![0]);
    expect(own.hostname).not.toBe("0.0.0.0");
    expect(await ask(`http://${own.host}/http/${host}/__status/200`)).toMatchObject({ status: 403 });
    expect(await ask(`${own.href}http/localhost:${port}/__status/200`)).toMatchObject({ status: 200 });
    const to = (target: string): string => `${own.href}http/localhost:${port}/__redirect?to=${target}`;
    for (const address of [`${own.href}http/${host}/__status/200`, `${own.href}http/[::1]:1/`]) {
      const { status, body } = await ask(address);
      expect({ status, body: body.toString() }).toMatchObject({
        status: 403,
        body: expect.stringMatching(/belongs to a private network.*--private-host/) as string,
      });
    }
    // A redirect leads to the player, and from there through the same check.
    const { headers } = await ask(to(encodeURIComponent(`http://${host}/x.mp4`)));
    expect(await ask(headers.location!)).toMatchObject({ status: 403 });
  });
});

test("no web page in Chromium can use the gateway", async () => {
  const sinceMs = Date.now();
  const browser = await puppeteer.launch({
    executablePath: findChromium()!,
    args: ["--no-sandbox", "--host-resolver-rules=MAP evil.test 127.0.0.1"],
  });
  try {
    const page = await browser.newPage();
    await page.goto(sample("/plain.html"));
    const target = mirror(sample("/__size/77777"));
    const rebound = target.replace("127.0.0.1", "evil.test");
    const seen = await page.evaluate(attack, [target, `${gateway}/`, `${gateway}/now`, rebound]);
    expect(seen.filter((result) => result !== "refused")).toEqual([]);
    await page.goto(rebound);
    expect(await page.content()).toContain("not the gateway's");
    const mine = await browser.newPage();
    await mine.goto(`${gateway}/?address=${encodeURIComponent("example.org/film.m3u8")}`);
    expect(await mine.$eval("pre", (element) => element.textContent)).toContain(
      `mpv '${gateway}/https/example.org/film.m3u8'`,
    );
    const style = await mine.$eval("section", (element) => getComputedStyle(element).borderRadius);
    expect(style).toBe("10px");
    await ask(mirror(sample("/__status/204")));
    await mine.waitForFunction(() => document.getElementById("now")!.textContent!.includes("/__status/204"));
    // A page of a site, under the gateway's address, is in a sandbox: it has no scripts.
    await mine.goto(mirror(sample("/hls.html")));
    expect(await mine.evaluate("document.scripts.length > 0 && typeof Hls")).toBe("undefined");
    const paths = (await accessLog(fleet, sinceMs)).map(({ path: at }) => at);
    expect(paths).not.toContain("/__size/77777");
  } finally {
    await browser.close();
  }
});

/** Runs in the page. Each address is asked in every way that a page has. */
async function attack(addresses: string[]): Promise<string[]> {
  const results: string[] = [];
  const note = (promise: Promise<unknown>): Promise<number> =>
    promise.then(
      (value) => results.push(`got ${String(value)}`),
      () => results.push("refused"),
    );
  const element = (name: string, attribute: string, address: string): Promise<string> =>
    new Promise((resolve, reject) => {
      const made = document.createElement(name);
      made.onload = () => resolve(name);
      made.onerror = () => reject(new Error(name));
      made.addEventListener("loadedmetadata", () => resolve(name));
      made.setAttribute("rel", "stylesheet");
      made.setAttribute(attribute, address);
      document.body.append(made);
    });
  for (const address of addresses) {
    await note(fetch(address).then((response) => response.text()));
    await note(fetch(address, { method: "POST", body: "x" }).then((response) => response.text()));
    await note(fetch(address, { headers: { range: "bytes=0-9" } }).then((response) => response.text()));
    for (const [name, attribute] of [
      ["img", "src"],
      ["script", "src"],
      ["video", "src"],
      ["link", "href"],
    ] as const)
      await note(element(name, attribute, address));
    await fetch(address, { mode: "no-cors" }).catch(() => undefined);
    const frame = document.createElement("iframe");
    frame.src = address;
    document.body.append(frame);
    navigator.sendBeacon(address, "x");
  }
  await new Promise((resolve) => setTimeout(resolve, 1000));
  return results;
}
