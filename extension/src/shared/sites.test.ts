import { isBoundToViewer, isOnAt, patternsOf, readsEverySite, siteOf, sitesOf } from "./sites";

test.each([
  ["https://video.example.org:8443/watch?v=1", "video.example.org"],
  ["http://127.0.0.1:80/", "127.0.0.1"],
  ["chrome://extensions", undefined],
  ["about:blank", undefined],
  ["not a url", undefined],
  [undefined, undefined],
])("the site of %j", (url, site) => expect(siteOf(url)).toBe(site));

test("the asked patterns have both schemes and only this host", () =>
  expect(patternsOf("a.example")).toEqual(["http://a.example/*", "https://a.example/*"]));

test("allowed patterns of one site are one site", () =>
  expect([...sitesOf(["http://a.example/*", "https://*.b.example/*", "https://a.example/*", "<all_urls>"])]).toEqual([
    ["a.example", ["http://a.example/*", "https://a.example/*"]],
    ["*.b.example", ["https://*.b.example/*"]],
    ["<all_urls>", ["<all_urls>"]],
  ]));

test.each([
  [undefined, false],
  [null, false],
  [[], false],
  [[{ js: ["page.js"] }], true],
])("with the content scripts %j the package reads every site: %s", (content_scripts, does) => {
  Object.assign(globalThis, { chrome: { runtime: { getManifest: () => ({ content_scripts }) } } });
  expect(readsEverySite()).toBe(does);
});

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
