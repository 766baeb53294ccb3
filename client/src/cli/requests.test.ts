import { readFileSync } from "node:fs";
import path from "node:path";
import { Command } from "commander";
import { bytesOf, CLI, execute, get, makeFolder, startOrigin, type CommandOrigin } from "../../test/command";
import { addRequestOptions, askedOf, type RequestWords } from "./requests";

const URL_OF_A = "http://a.example/f";
const parse = (...words: string[]): RequestWords =>
  addRequestOptions(new Command())
    .exitOverride()
    .configureOutput({ writeErr: () => undefined })
    .parse(words, { from: "user" })
    .opts<RequestWords>();
const asked = (address: string, ...words: string[]) => askedOf(address, parse(...words), {});
const basic = (text: string): string => `Basic ${Buffer.from(text).toString("base64")}`;

describe("requests", () => {
  test("requests: patience, caches and ranges become options of the library", () => {
    expect(asked(URL_OF_A, "--timeout", "2.5", "--retry", "0", "--no-cache", "--compressed", "--range", "0-9")).toEqual(
      {
        url: URL_OF_A,
        forOrigin: [],
        options: {
          timeoutMs: 2500,
          retries: 0,
          cache: "no-cache",
          decode: true,
          range: { start: 0, end: 9 },
          recordAfterRead: true,
        },
      },
    );
    expect(asked(URL_OF_A)).toEqual({ url: URL_OF_A, forOrigin: [], options: { recordAfterRead: true } });
  });

  test("requests: without a fallback the proxies get as much time as an origin", () => {
    const strict = { allowFallback: false };
    expect(askedOf(URL_OF_A, parse(), strict).options.timeoutMs).toBe(120_000);
    expect(askedOf(URL_OF_A, parse("--timeout", "3"), strict).options.timeoutMs).toBe(3000);
  });

  test.each([
    [["-H", "X-Key: a: b", "-H", "Cookie: a=1", "-H", "cookie: b=2"], { "x-key": "a: b", cookie: "a=1; b=2" }],
    [["-u", "me:p:w"], { authorization: basic("me:p:w") }],
    [["-u", "me"], { authorization: basic("me:") }],
    [["-A", "x/1", "-e", "http://r/"], { "user-agent": "x/1", referer: "http://r/" }],
    [["-u", "me:pw", "-H", "Authorization: Bearer t"], { authorization: "Bearer t" }],
  ])("requests: %j goes to the origin alone", (words, headers) => {
    expect(asked(URL_OF_A, ...words)).toMatchObject({ options: { mode: "direct", headers } });
  });

  test.each([
    ["http://me:p%40w@a.example/f?u@v", "http://a.example/f?u@v", "me:p@w"],
    ["http://me@a.example/", "http://a.example/", "me:"],
    ["http://me:p@w@a.example/x?", "http://a.example/x?", "me:p@w"],
  ])("requests: the login of %s leaves the address", (address, url, login) => {
    expect(asked(address)).toMatchObject({ url, options: { headers: { authorization: basic(login) } } });
  });

  test.each([
    ["-H", "no colon", /Allowed: NAME: VALUE/],
    ["-H", "a\nb: c", /Allowed: NAME: VALUE/],
    ["-H", "Range: bytes=0-1", /Use --range/],
    ["-H", "Transfer-Encoding: chunked", /cannot be set/],
    ["--timeout", "0", /Allowed: seconds above 0/],
    ["--proxy-header", "X: y", /Proxies never get headers.*With -H/],
  ])("requests: %s %j is refused", (name, value, message) => {
    expect(() => asked(URL_OF_A, name, value)).toThrow(message);
  });

  test("requests: headers and --no-fallback contradict each other", () => {
    expect(() => askedOf(URL_OF_A, parse("-A", "x"), { allowFallback: false })).toThrow(
      /these are for the origin alone: user-agent/,
    );
  });
});

describe("requests at an origin", () => {
  let origin: CommandOrigin;
  let other: CommandOrigin;
  const folder = makeFolder();
  beforeAll(async () => {
    [origin, other] = [await startOrigin(), await startOrigin()];
    origin.files.set("/f", { body: bytesOf(1, 10) });
    other.files.set("/f", { body: bytesOf(2, 10) });
    origin.files.set("/away", { body: Buffer.alloc(0), status: 302, headers: { location: `${other.url}/f` } });
  });
  afterAll(() => {
    origin.close();
    other.close();
    folder.remove();
  });

  test("requests: a login is used and never shown, and a redirect takes it nowhere else", async () => {
    const address = `${origin.url.replace("//", "//me:geheim@")}/away`;
    const words = [CLI, "get", address, "-H", "X-Key: geheim2", "-A", "x/1", "--origo", "http://127.0.0.1:9", "--json"];
    const { status, stdout, stderr } = await execute(process.execPath, words, { cwd: folder.path });
    expect(status).toBe(0);
    expect(origin.requests.at(-1)?.headers).toMatchObject({ authorization: basic("me:geheim"), "x-key": "geheim2" });
    expect(other.requests.at(-1)?.headers).toMatchObject({ "user-agent": "x/1" });
    expect(JSON.stringify(other.requests)).not.toMatch(/geheim|authorization/);
    expect(stdout + stderr).not.toContain("geheim");
    expect(stderr).toContain("Direct: this is for the origin alone, and proxies never get it: authorization,");
  });

  test.each(["ftp://me:geheim@h/f", "http://me:geheim@[broken/f", "http://me:geheim@127.0.0.1:1/f"])(
    "requests: an error about %s does not repeat the password",
    async (address) => {
      const { status, stdout, stderr } = await get([address, "-o", "f", "--json", "--retry", "0"], {
        cwd: folder.path,
      });
      expect(status).toBeGreaterThan(0);
      expect(stdout + stderr).not.toContain("geheim");
    },
  );

  test("requests: http_proxy and no_proxy hold for direct requests", async () => {
    const env = { http_proxy: other.url, no_proxy: "" };
    other.files.set(`${origin.url}/f`, { body: bytesOf(3, 10) });
    const through = await get([`${origin.url}/f`], { cwd: folder.path, env });
    const past = await get([`${origin.url}/f`], { cwd: folder.path, env: { ...env, no_proxy: "127.0.0.1" } });
    expect(past.stdout.equals(bytesOf(1, 10))).toBe(true);
    expect(through.stdout.equals(bytesOf(3, 10))).toBe(true);
    const all = { http_proxy: "", no_proxy: "", ALL_PROXY: other.url.replace("http://", "") };
    const throughAll = await get([`${origin.url}/f`], { cwd: folder.path, env: all });
    expect(throughAll.stdout.equals(bytesOf(3, 10))).toBe(true);
    const wrong = await get([`${origin.url}/f`], { cwd: folder.path, env: { ...all, ALL_PROXY: "socks5://u:pw@h:1" } });
    expect([wrong.status, wrong.stdout.length]).toEqual([1, 0]);
    expect(wrong.stderr).toContain(
      "ALL_PROXY must name an http or https proxy, and no other kind works: got socks5://***@h:1",
    );
  });

  test("requests: names with other letters than ASCII, in addresses and in no_proxy", async () => {
    const env = { http_proxy: other.url, no_proxy: "127.0.0.2, *.bücher.invalid,.grün.invalid" };
    other.files.set("http://xn--mnchen-3ya.invalid/stra%C3%9Fe", { body: bytesOf(5, 10) });
    const words = ["--retry", "0", "-q"];
    const through = await get(["http://MÜNCHEN.invalid/straße", ...words], { cwd: folder.path, env });
    expect(through.stdout.equals(bytesOf(5, 10))).toBe(true);
    for (const name of ["www.bücher.invalid", "www.grün.invalid"]) {
      const past = await get([`http://${name}/f`, ...words], { cwd: folder.path, env });
      expect(past.stderr).toContain("the name of the host");
    }
  });

  test.each(["-x", "--proxy"])("requests: %s of curl says what to use", async (option) => {
    const { status, stderr } = await get([option, "socks5://h:1", `${origin.url}/f`], { cwd: folder.path });
    expect([status, stderr]).toEqual([2, expect.stringContaining("the variables http_proxy and https_proxy")]);
  });

  test("requests: http_proxy holds for the playlists of a video", async () => {
    other.files.set(`${origin.url}/v.m3u8`, { body: Buffer.from("#EXTM3U\n#EXTINF:1,\nf\n#EXT-X-ENDLIST\n") });
    other.files.set(`${origin.url}/f`, { body: bytesOf(4, 10) });
    const env = { http_proxy: other.url, no_proxy: "", PATH: folder.path };
    const words = [`${origin.url}/v.m3u8`, "-o", "film.ts", "--mode", "direct"];
    const { status, stderr } = await get(words, { cwd: folder.path, env });
    expect({ status, stderr }).toMatchObject({ status: 0 });
    expect(readFileSync(path.join(folder.path, "film.ts")).equals(bytesOf(4, 10))).toBe(true);
  });
});
