import { allowsFetch, allowsMediaSource, parsePolicies } from "./csp";

const HOME = new URL("https://site.example/watch");
const FILE = "https://media.example/films/one.mp4";

const mayFetch = (policy: string, url = FILE, self = HOME): boolean =>
  allowsFetch(parsePolicies([policy]), self, new URL(url));

describe("csp: what a policy lets a page fetch", () => {
  test.each([
    ["script-src 'self'", true],
    ["connect-src", false],
    ["connect-src 'none'", false],
    ["default-src 'none'; media-src *", false],
    ["default-src 'none'; connect-src *", true],
    ["connect-src *; connect-src 'none'", true],
    ["CONNECT-SRC 'SELF' HTTPS:", true],
    ["connect-src http:", true],
    ["connect-src wss:", false],
    ["connect-src 'self'", false],
    ["connect-src media.example", true],
    ["connect-src MEDIA.example:443", true],
    ["connect-src media.example:80", true],
    ["connect-src media.example:8443", false],
    ["connect-src media.example:*", true],
    ["connect-src http://media.example", true],
    ["connect-src *.example", true],
    ["connect-src *.media.example", false],
    ["connect-src https://*", true],
    ["connect-src edia.example", false],
    ["connect-src media.example/films/", true],
    ["connect-src media.example/films", false],
    ["connect-src media.example/", true],
    ["connect-src media.example/films/one.mp4", true],
    ["connect-src media.example/films/o%6ee.mp4", true],
    ["connect-src media.example/films/two.mp4", false],
    ["connect-src 'nonce-x' 'unsafe-inline' [", false],
  ])("%s", (policy, isAllowed) => expect(mayFetch(policy)).toBe(isAllowed));

  test("every policy must allow it, in one header or in several", () => {
    expect(mayFetch("connect-src *, connect-src 'self'")).toBe(false);
    const several = parsePolicies(["connect-src 'self'", "connect-src *"]);
    expect(allowsFetch(several, HOME, new URL(FILE))).toBe(false);
  });

  test("a page in the clear means the same host over TLS, too", () => {
    const self = new URL("http://site.example/");
    expect(mayFetch("connect-src 'self'", "https://site.example/a.mp4", self)).toBe(true);
    expect(mayFetch("connect-src site.example", "https://site.example/a.mp4", self)).toBe(true);
    expect(mayFetch("connect-src 'self'", "http://site.example/a.mp4", HOME)).toBe(false);
    expect(mayFetch("connect-src 'self'", "http://site.example:81/a.mp4", self)).toBe(false);
  });
});

test.each([
  ["connect-src 'none'", true],
  ["media-src blob:", true],
  ["media-src 'self' BLOB:", true],
  ["default-src blob:", true],
  ["media-src *", false],
  ["media-src 'self'", false],
  ["default-src https: data:", false],
])("csp: a video on a MediaSource with %s", (policy, isAllowed) =>
  expect(allowsMediaSource(parsePolicies([policy]))).toBe(isAllowed),
);
