import { isBoundToViewer, isOnAt, patternOf, siteOf } from "./sites";

test.each([
  ["https://video.example.org:8443/watch?v=1", "video.example.org"],
  ["http://127.0.0.1:80/", "127.0.0.1"],
  ["chrome://extensions", undefined],
  ["about:blank", undefined],
  ["not a url", undefined],
  [undefined, undefined],
])("the site of %j", (url, site) => expect(siteOf(url)).toBe(site));

test("the asked pattern has both schemes and only this host", () =>
  expect(patternOf("a.example")).toBe("*://a.example/*"));

test.each([
  ["www.youtube.com", true],
  ["youtube.com", true],
  ["notyoutube.com", false],
  ["youtube.com.example", false],
])("%s is bound to the viewer: %s", (site, is) => {
  expect(isBoundToViewer(site)).toBe(is);
});

test.each<[string, Record<string, unknown>, boolean]>([
  ["https://a.example/watch", {}, true],
  ["https://a.example:8443", { enabled: true, offSites: ["b.example"] }, true],
  ["https://a.example:8443", { offSites: ["b.example", "a.example"] }, false],
  ["https://a.example", { enabled: false }, false],
])("at %s with %j stored the extension is on: %s", (url, stored, is) => expect(isOnAt(url, stored)).toBe(is));
