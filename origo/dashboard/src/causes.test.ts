import { causesOf } from "./causes";
import { errorOf } from "../../../contract/test/samples";

test("causes: reports of one cause from many proxies are one row, with the newest first", () => {
  const url = "http://origin.example/1.m4s";
  const of = (message: string, atMs: number) => errorOf({ kind: "originFailed", message, url, atMs });
  const errors = [
    of("Proxy proxy-2: the origin answered 500", 5),
    of("Proxy proxy-1: the origin answered 500", 4),
    of("the origin closed", 3),
    of("Proxy proxy-2: the origin answered 500", 2),
  ];
  expect(causesOf(errors).map(({ latest, count, proxies }) => [latest.atMs, count, proxies])).toEqual([
    [5, 2, ["proxy-1", "proxy-2"]],
    [3, 1, []],
  ]);
});

test("causes: the reason of a fallback is one row with what the proxies reported, and clients are counted", () => {
  const of = (message: string, more: object) => errorOf({ kind: "egressRefused", message, ...more });
  const [cause, ...others] = causesOf([
    of("not allowed", { ledTo: "fallback", clientId: "a" }),
    of("Proxy p: not allowed", { clientId: "a" }),
    of("Proxy q: not allowed", { clientId: "b" }),
  ]);
  expect(others).toEqual([]);
  expect(cause).toMatchObject({ count: 1, proxies: ["p", "q"], clientIds: ["a", "b"], ledTo: "fallback" });
});

test("causes: another kind, source or address is another cause", () => {
  const same = { kind: "dnsFailed", message: "Proxy a: no", url: "http://a.example/" } as const;
  const errors = [
    errorOf(same),
    errorOf({ ...same, kind: "originFailed" }),
    errorOf({ ...same, source: "extension" }),
    errorOf({ ...same, url: "http://b.example/" }),
  ];
  expect(causesOf(errors)).toHaveLength(4);
});
