import { gatewayAddress, mirrorAt, mirroredPath, parseMirrored, rewritten } from "./addresses";

const GATEWAY = "http://127.0.0.1:7690";

describe("the gateway's addresses", () => {
  test.each([
    ["/https/example.org/a/b.m3u8?t=1", "https://example.org/a/b.m3u8?t=1"],
    ["/http/example.org:8080/", "http://example.org:8080/"],
    ["/https/example.org", "https://example.org/"],
    ["/https/example.org?a=1", "https://example.org/?a=1"],
    ["/http/[::1]:81/x", "http://[::1]:81/x"],
    ["/https/example.org/x?", "https://example.org/x?"],
    ["/https/example.org//a//b%20c", "https://example.org//a//b%20c"],
  ])("%s is %s, and back", (path, address) => {
    const url = parseMirrored(path) as URL;
    expect(url.href).toBe(address);
    expect(parseMirrored(mirroredPath(url))).toEqual(url);
  });

  test.each(["/https://example.org/a", "/https:/example.org/a"])("%s leads to the mirrored form", (path) => {
    expect(parseMirrored(path)).toEqual({ path: "/https/example.org/a" });
  });

  test.each([
    ["/ftp/example.org/a", /path is not known.*ftp/],
    ["/https/", /path is not known/],
    ["/https/exa%20mple/a", /host is not valid.*exa%20mple/],
    ["/https/example.org:99999/a", /host is not valid.*99999/],
    ["/https/user@example.org/a", /user name/],
  ])("%s is a fault that says why", (path, message) => {
    expect(parseMirrored(path)).toEqual({ message: expect.stringMatching(message) as string });
  });

  test("a user name and a password are for the origin", () => {
    expect(gatewayAddress(new URL("https://u:p@example.org/a"), GATEWAY)).toBe(
      "http://u:p@127.0.0.1:7690/https/example.org/a",
    );
  });

  test.each([
    ["seg.ts", "seg.ts"],
    ["../seg.ts?x=%2F#f", "../seg.ts?x=%2F#f"],
    ["?list=2", "?list=2"],
    ["/top.ts", "/https/example.org/top.ts"],
    ["../../../top.ts", "/https/example.org/top.ts"],
    ["//cdn.example/a.ts", `${GATEWAY}/https/cdn.example/a.ts`],
    ["https://example.org/a/own.ts", "/https/example.org/a/own.ts"],
    ["http://example.org/a/plain.ts", `${GATEWAY}/http/example.org/a/plain.ts`],
    ["https://cdn.example:8443/a.ts?t=/x", `${GATEWAY}/https/cdn.example:8443/a.ts?t=/x`],
    ["https://cdn.example/$Number%05d$.m4s", `${GATEWAY}/https/cdn.example/$Number%05d$.m4s`],
    ["data:text/plain,x", "data:text/plain,x"],
    ["skd://key", "skd://key"],
  ])("a playlist's %s becomes %s", (reference, expected) => {
    expect(rewritten(reference, mirrorAt(new URL("https://example.org/a/list.m3u8"), GATEWAY))).toBe(expected);
  });

  test("a token stays before every address", () => {
    const base = new URL("https://example.org/a/list.m3u8");
    expect(rewritten("/top.ts", mirrorAt(base, `${GATEWAY}/TOKEN`))).toBe("/TOKEN/https/example.org/top.ts");
    expect(rewritten("../../top.ts", mirrorAt(base, `${GATEWAY}/TOKEN`))).toBe("/TOKEN/https/example.org/top.ts");
  });
});
