import { isOther, versionOf, type Version } from "./version";

test.each<[string, Version, Version, boolean]>([
  ["the same", { etag: '"1"', modified: "a", bytes: 3 }, { etag: '"1"', modified: "a", bytes: 3 }, false],
  ["another length", { etag: '"1"', bytes: 3 }, { etag: '"1"', bytes: 4 }, true],
  ["another tag", { etag: '"1"', bytes: 3 }, { etag: '"2"', bytes: 3 }, true],
  ["another date", { modified: "a" }, { modified: "b" }, true],
  ["another server of the same site", { etag: '"1"', modified: "a" }, { etag: '"2"', modified: "a" }, false],
  ["a file that was only touched", { etag: '"1"', modified: "a" }, { etag: '"1"', modified: "b" }, false],
  ["another tag and date", { etag: '"1"', modified: "a" }, { etag: '"2"', modified: "b" }, true],
  ["nothing that both have", { etag: '"1"' }, { modified: "b" }, false],
  ["nothing", {}, {}, false],
])("%s", (_name, a, b, expected) => expect([isOther(a, b), isOther(b, a)]).toEqual([expected, expected]));

test("the version of a part is that of its file, and a weak tag counts", () => {
  const headers = { "content-range": "bytes 5-9/70", etag: 'W/"x"', "last-modified": "a" };
  expect(versionOf({ status: 206, headers, totalBytes: 5 })).toEqual({ etag: '"x"', modified: "a", bytes: 70 });
  expect(versionOf({ status: 200, headers: {}, totalBytes: null })).toEqual({});
});
