type Note = (details: object) => void;
const stored: Record<string, unknown> = {};
let note!: Note;
let { mayFetch, mayPlay, noteStart } = {} as typeof import("./policies");

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
  ({ mayFetch, mayPlay, noteStart } = await import("./policies"));
}

const PAGE = "https://site.example/watch";
const OTHER = "https://site.example/other";
const SELF = "connect-src 'self'";

/** A navigation's answer comes, in the page's own frame or another one. */
const answer = (url: string, policies: string[], more: object = {}): void =>
  note({
    tabId: 1,
    frameId: 0,
    url,
    responseHeaders: policies.map((value) => ({ name: "Content-Security-Policy", value })),
    ...more,
  });
const senderOf = (documentId: string, frameId = 0) =>
  ({ tab: { id: 1 }, frameId, documentId }) as chrome.runtime.MessageSender;
/** Its document starts. The document's id is `documentId`. */
function load(url: string, documentId: string, ...policies: string[]): void {
  answer(url, policies);
  noteStart(url, senderOf(documentId));
}
const ask = (documentId = "a", url = "https://media.example/a.mp4", metaPolicies: string[] = []) =>
  mayPlay({ url, metaPolicies }, senderOf(documentId));

beforeEach(start);

test("policies: a document without one may play anything", async () => {
  load(PAGE, "a");
  expect(await Promise.all([ask(), ask("a", "x")])).toEqual(["anywhere", "no"]);
});

test("policies: of an unknown document nothing is assumed", async () => {
  load(PAGE, "a");
  noteStart(PAGE, senderOf("b"));
  noteStart(PAGE, {});
  expect(await Promise.all([ask("b"), ask("c"), mayPlay({ url: PAGE, metaPolicies: [] }, {})])).toEqual([
    "no",
    "no",
    "no",
  ]);
});

test("policies: documents of one address have each their own, in whatever order they load", async () => {
  load(PAGE, "a", SELF);
  load(PAGE, "b");
  load(PAGE, "c", SELF);
  expect(await Promise.all(["a", "b", "c"].map((id) => ask(id)))).toEqual(["no", "anywhere", "no"]);
});

test("policies: frames of one address have each their own, in whatever order they start", async () => {
  [[SELF], [], [SELF]].forEach((policies, frameId) => answer(PAGE, policies, { frameId }));
  for (const frameId of [2, 1, 0]) noteStart(PAGE, senderOf(`in ${frameId}`, frameId));
  expect(await Promise.all([0, 1, 2].map((at) => ask(`in ${at}`)))).toEqual(["no", "anywhere", "no"]);
});

test("policies: the strictest holds while several answers could have brought the document", async () => {
  answer(PAGE, [SELF]);
  answer(PAGE, []);
  noteStart(PAGE, senderOf("a"));
  load(PAGE, "b");
  expect(await Promise.all([ask("a"), ask("b")])).toEqual(["no", "anywhere"]);
});

test("policies: what a document fetches ahead brings none", async () => {
  answer(PAGE, [SELF], { documentId: "a" });
  load(PAGE, "b");
  expect(await ask("b")).toBe("anywhere");
});

test("policies: headers and meta elements count, in any letters and with a fragment", async () => {
  const responseHeaders = [{ name: "content-security-policy-report-only", value: "connect-src media.example" }];
  answer(`${PAGE}#top`, [], { responseHeaders });
  noteStart(PAGE, senderOf("a"));
  expect(await ask()).toBe("here");
  expect(await ask("a", undefined, ["media-src media.example"])).toBe("no");
  expect(await ask("a", "https://other.example/a.mp4")).toBe("no");
});

test("policies: a background that starts again still knows the open documents, and newer ones count", async () => {
  load(PAGE, "a", SELF);
  await new Promise((resolve) => setTimeout(resolve));
  await start();
  load(OTHER, "b");
  expect(await Promise.all([ask("a"), ask("a", `${PAGE}.mp4`), ask("b")])).toEqual(["no", "here", "anywhere"]);
});

test("policies: a request in the name of an origin must be allowed to each of its known documents", async () => {
  const api = "https://free.example/api/v1/videos/1";
  const may = () => mayFetch("https://free.example", api);
  load("https://other.example/", "other", "connect-src 'none'");
  expect(await may()).toBe(false);
  load("https://free.example/", "free", "default-src 'self'");
  expect(await may()).toBe(true);
  load("https://free.example/strict", "strict", "connect-src https://free.example/static/");
  expect(await may()).toBe(false);
});
