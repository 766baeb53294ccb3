import type { PlainAnswer } from "../shared/runtime";

type Note = (details: object) => void;
const stored: Record<string, unknown> = {};
let note!: Note;
let mayPlay!: (typeof import("./policies"))["mayPlay"];

/** Starts the background anew, as the browser does after it has stopped it. */
async function start(): Promise<void> {
  jest.resetModules();
  const chrome = {
    webRequest: { onResponseStarted: { addListener: (listener: Note) => (note = listener) } },
    storage: {
      session: {
        get: () => Promise.resolve({ ...stored }),
        set: (items: object) => Promise.resolve(void Object.assign(stored, items)),
      },
    },
  };
  Object.assign(globalThis, { chrome });
  ({ mayPlay } = await import("./policies"));
}

const PAGE = "https://site.example/watch";
const load = (url: string, ...policies: string[]): void =>
  note({ tabId: 1, url, responseHeaders: policies.map((value) => ({ name: "Content-Security-Policy", value })) });
const ask = (url = "https://media.example/a.mp4", metaPolicies: string[] = [], documentUrl = PAGE) =>
  mayPlay({ documentUrl, url, metaPolicies }, { tab: { id: 1 } as chrome.tabs.Tab }) as Promise<PlainAnswer>;

beforeEach(start);

test("policies: a document without one may play anything", async () => {
  load(PAGE);
  expect(await Promise.all([ask(), ask("x")])).toEqual(["anywhere", "no"]);
});

test("policies: of an unknown document nothing is assumed", async () => {
  load(PAGE);
  expect(await ask(undefined, [], "https://site.example/other")).toBe("no");
  expect(await mayPlay({ documentUrl: PAGE, url: PAGE, metaPolicies: [] }, {})).toBe("no");
});

test("policies: the documents of a folder have each their own, in whatever order they load", async () => {
  const [strict, free] = ["https://site.example/a/strict.html", "https://site.example/a/free.html"];
  const answers = async () => [await ask(undefined, [], strict), await ask(undefined, [], free)];
  load(strict, "default-src 'self'");
  expect(await answers()).toEqual(["no", "no"]);
  load(free);
  expect(await answers()).toEqual(["no", "anywhere"]);
  load(strict, "default-src 'self'");
  expect(await answers()).toEqual(["no", "anywhere"]);
  expect(await ask(undefined, [], "https://site.example/a/")).toBe("no");
});

test("policies: headers and meta elements count, in any letters and with a fragment", async () => {
  note({
    tabId: 1,
    url: `${PAGE}#top`,
    responseHeaders: [{ name: "content-security-policy-report-only", value: "connect-src media.example" }],
  });
  expect(await ask()).toBe("here");
  expect(await ask(undefined, ["media-src media.example"])).toBe("no");
  expect(await ask("https://other.example/a.mp4")).toBe("no");
});

test("policies: a background that starts again still knows the open documents, and newer ones count", async () => {
  load(PAGE, "connect-src 'self'");
  load("https://site.example/other", "connect-src 'self'");
  expect(await ask()).toBe("no");
  await new Promise((resolve) => setTimeout(resolve));
  await start();
  load("https://site.example/other");
  expect([await ask(), await ask(undefined, [], "https://site.example/other")]).toEqual(["no", "anywhere"]);
});
