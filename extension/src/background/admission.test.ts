import { mayHavePort } from "./admission";

const asked: string[] = [];

function admit(pageOrigin: string, tabOrigin: string, stored: Record<string, unknown> = {}): Promise<boolean> {
  const contains = ({ origins }: { origins: string[] }): Promise<boolean> => {
    asked.push(...origins);
    return Promise.resolve(/^https?:\/\/(?:video|player)\.example\/\*$/.test(origins[0] ?? ""));
  };
  Object.assign(globalThis, {
    chrome: { permissions: { contains }, storage: { local: { get: () => Promise.resolve(stored) } } },
  });
  return mayHavePort(pageOrigin, tabOrigin);
}

test.each<[string, string, Record<string, unknown>, boolean]>([
  ["https://video.example:8443", "https://video.example:8443", {}, true],
  ["http://video.example", "http://video.example", { enabled: true, offSites: ["other.example"] }, true],
  ["https://player.example", "https://video.example", {}, true],
  ["https://elsewhere.example", "https://video.example", {}, false],
  ["https://video.example", "https://video.example", { offSites: ["video.example"] }, false],
  ["https://player.example", "https://video.example", { offSites: ["video.example"] }, false],
  ["https://video.example", "https://video.example", { enabled: false }, false],
  ["null", "https://video.example", {}, false],
  ["chrome-extension://abc", "chrome-extension://abc", {}, false],
])("admission: a page of %s in a tab of %s with %j stored may have a port: %s", async (page, tab, stored, may) =>
  expect(await admit(page, tab, stored)).toBe(may),
);

test("admission: the permission is checked for the page's scheme and host, on any port", async () => {
  asked.length = 0;
  await admit("http://video.example:8080", "http://video.example:8080");
  expect(asked).toEqual(["http://video.example/*"]);
});
