import { parseHostRule, vetAddresses, vetUrl, type EgressPolicy } from "./policy";

function policy(allow: string, allowPrivate = "", own: string[] = []): EgressPolicy {
  const rules = (list: string) =>
    list
      .split(",")
      .filter(Boolean)
      .map((text) => parseHostRule(text)!);
  return { allow: rules(allow), allowPrivate: rules(allowPrivate), ownAddresses: new Set(own) };
}

function verdict(url: string, of: EgressPolicy): string {
  const vetted = vetUrl(url, of);
  return vetted instanceof URL ? "ok" : vetted.kind;
}

const LIST = policy("example.com,cdn.example.net:8443,[2606:4700::1],9.9.9.9", "127.0.0.1:7680,localhost");

test.each([
  ["http://example.com/a", "ok"],
  ["https://example.com/a?b=c#d", "ok"],
  ["https://video.example.com/", "ok"],
  ["https://EXAMPLE.com./", "ok"],
  ["https://other-example.com/", "egressRefused"],
  ["https://example.com.evil.net/", "egressRefused"],
  ["https://example.co/", "egressRefused"],
  ["https://com/", "egressRefused"],
  ["https://example.com:80/", "ok"],
  ["https://example.com:8443/", "egressRefused"],
  ["https://cdn.example.net:8443/", "ok"],
  ["https://a.cdn.example.net:8443/", "ok"],
  ["https://cdn.example.net/", "egressRefused"],
  ["https://cdn.example.net:8444/", "egressRefused"],
  ["http://[2606:4700:0:0::1]/", "ok"],
  ["http://[2606:4700::2]/", "egressRefused"],
  ["http://9.9.9.9/", "ok"],
  ["http://0x09090909/", "ok"],
  ["http://1.9.9.9.9/", "badUrl"],
  ["http://127.0.0.1:7680/", "ok"],
  ["http://127.0.0.1:7681/", "egressRefused"],
  ["http://2130706433:7680/", "ok"],
  ["http://localhost/", "ok"],
  ["http://a.localhost/", "egressRefused"],
  ["http://user@example.com/", "badUrl"],
  ["http://user:secret@example.com/", "badUrl"],
  ["ftp://example.com/", "badUrl"],
  ["file:///etc/passwd", "badUrl"],
  ["javascript:alert(1)", "badUrl"],
  ["//example.com/", "badUrl"],
  ["http://", "badUrl"],
  ["", "badUrl"],
  [`http://example.com/${"a".repeat(8192 - 19)}`, "ok"],
  [`http://example.com/${"a".repeat(8192 - 18)}`, "urlTooLong"],
])("policy: %.80s is %s", (url, expected) => {
  expect(verdict(url, LIST)).toBe(expected);
});

test("policy: * allows every host, but only on the default ports", () => {
  expect(verdict("https://anything.org/", policy("*"))).toBe("ok");
  expect(verdict("https://anything.org:22/", policy("*"))).toBe("egressRefused");
});

test("policy: the vetted URL is canonical and has no fragment", () => {
  expect(String(vetUrl("http://EXAMPLE.com:80/a b#frag", LIST))).toBe("http://example.com/a%20b");
});

test.each<[host: string, addresses: string[], ok: boolean]>([
  ["http://example.com/", ["93.184.216.34"], true],
  ["http://example.com/", ["93.184.216.34", "2606:2800:220:1::1"], true],
  ["http://example.com/", ["93.184.216.34", "10.0.0.1"], false],
  ["http://example.com/", ["127.0.0.1"], false],
  ["http://example.com/", ["::ffff:127.0.0.1"], false],
  ["http://example.com/", ["169.254.169.254"], false],
  ["http://example.com/", ["64:ff9b::a00:1"], false],
  ["http://example.com/", ["8.8.8.8"], false],
  ["http://127.0.0.1:7680/", ["127.0.0.1"], true],
  ["http://localhost/", ["127.0.0.1", "::1"], true],
  ["http://localhost/", ["127.0.0.1", "169.254.169.254"], false],
  ["http://localhost/", ["8.8.8.8"], true],
  ["http://localhost/", ["0.0.0.0"], false],
])("policy: %s resolving to %j is dialled: %s (8.8.8.8 is this machine's own)", (host, addresses, ok) => {
  const of = policy("example.com", "127.0.0.1:7680,localhost", ["8.8.8.8"]);
  expect(vetAddresses(vetUrl(host, of) as URL, addresses, of) === undefined).toBe(ok);
});

test.each([["a:0"], ["a:65536"], ["a:b"], ["http://a"], ["a/b"], ["u@a"], ["a b"], [""], [":80"], ["[::1"], ["a:1:2"]])(
  "policy: %j is not a host rule",
  (text) => expect(parseHostRule(text)).toBeUndefined(),
);

test("policy: host rules in every form", () => {
  expect(parseHostRule("*")).toEqual({ host: "*" });
  expect(parseHostRule("Example.COM.")).toEqual({ host: "example.com" });
  expect(parseHostRule("a:65535")).toEqual({ host: "a", port: 65535 });
  expect(parseHostRule("::1")).toEqual({ host: "::1" });
  expect(parseHostRule("[0:0::1]:80")).toEqual({ host: "::1", port: 80 });
});
