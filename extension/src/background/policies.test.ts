type Note = (details: object) => void;
let note!: Note;
/** By tab: what its content scripts answer. */
const answers = new Map<number, () => Promise<unknown>>();
let asked: object[] = [];
let { awaitPolicies, compileMetas, mayFetch, takePolicies } = {} as typeof import("./policies");

beforeEach(async () => {
  jest.useFakeTimers();
  jest.resetModules();
  asked = [];
  const chrome = {
    webRequest: { onResponseStarted: { addListener: (listener: Note) => (note = listener) } },
    tabs: {
      query: () => Promise.resolve([...answers.keys()].map((id) => ({ id }))),
      sendMessage: (id: number, question: object) => {
        asked.push(question);
        return answers.get(id)!();
      },
    },
  };
  Object.assign(globalThis, { chrome });
  ({ awaitPolicies, compileMetas, mayFetch, takePolicies } = await import("./policies"));
});

afterEach(() => jest.useRealTimers());

const PAGE = "https://site.example/watch";

/** A navigation's answer comes, in the page's own frame or another one. */
const answer = (policies: string[], more: object = {}): void =>
  note({
    tabId: 1,
    frameId: 0,
    url: PAGE,
    responseHeaders: policies.map((value) => ({ name: "Content-Security-Policy", value })),
    ...more,
  });
const HOSTS = ["a.example", "b.example", "c.example"];
/** Of each policy those of HOSTS that the document may ask, as it learns at its start; null: unknown. */
function start(frameId = 0, url = PAGE): string[] | null {
  const sender = { tab: { id: 1 }, frameId } as chrome.runtime.MessageSender;
  return takePolicies(url, sender)?.connect.map(allowedBy) ?? null;
}
/** The same, for a document whose answer may be heard of later. */
async function startLate(): Promise<string[] | null> {
  const sender = { tab: { id: 1 }, frameId: 0 } as chrome.runtime.MessageSender;
  return (await awaitPolicies(PAGE, sender))?.connect.map(allowedBy) ?? null;
}
const allowedBy = (source: string): string =>
  HOSTS.filter((host) => new RegExp(source).test(`https://${host}/1.ts`)).join(" ");

test("policies: a document without one has none, and those of another document are not known", () => {
  answer([]);
  expect(start(0, "https://site.example/other")).toBe(null);
  expect(start(1)).toBe(null);
  expect(takePolicies(PAGE, {})).toBe(null);
  expect([start(), start()]).toEqual([[], null]);
});

test("policies: an answer that is heard of after its document counts, for the next document too", async () => {
  const starts = [startLate(), startLate()];
  answer(["connect-src b.example"], { frameId: 1 });
  answer(["connect-src a.example"]);
  expect(await Promise.all(starts)).toEqual([["a.example"], ["a.example"]]);
  answer(["connect-src c.example"]);
  expect(start()).toEqual(["a.example", "c.example"]);
  const never = startLate();
  jest.runAllTimers();
  expect(await never).toBe(null);
});

test("policies: documents of one address have each their own", () => {
  const starts = ["a.example", "b.example", "a.example"].map((host) => {
    answer([`connect-src ${host}`]);
    return start();
  });
  expect(starts).toEqual([["a.example"], ["b.example"], ["a.example"]]);
});

test("policies: frames of one address have each their own, in whatever order they start", () => {
  HOSTS.forEach((host, frameId) => answer([`connect-src ${host}`], { frameId }));
  expect([2, 0, 1].map((frameId) => start(frameId))).toEqual([["c.example"], ["a.example"], ["b.example"]]);
});

test("policies: those of all answers that could have brought the document count", () => {
  answer(["connect-src a.example"]);
  answer(["connect-src b.example", "img-src *"]);
  expect(start()).toEqual(["a.example", "b.example"]);
});

test("policies: what a document fetches ahead brings none", () => {
  answer(["connect-src a.example"], { documentId: "a" });
  expect(start()).toBe(null);
});

test("policies: headers count in any letters, those that only report, and with a fragment", () => {
  const responseHeaders = [{ name: "content-security-policy-report-only", value: "connect-src a.example" }];
  answer([], { url: `${PAGE}#top`, responseHeaders });
  expect(start(0, `${PAGE}#end`)).toEqual(["a.example"]);
});

test.each([
  ["require-corp", [""]],
  ['credentialless; report-to="to"', [""]],
  ["unsafe-none", []],
])("policies: an embedder policy that only reports, %s, allows nothing", (value, allowed) => {
  answer([], { responseHeaders: [{ name: "Cross-Origin-Embedder-Policy-Report-Only", value }] });
  expect(start()).toEqual(allowed);
});

test("policies: those in meta elements are read, and too long ones allow nothing", () => {
  const read = (...texts: string[]) => compileMetas(texts, PAGE);
  const { connect, mediaSource } = read("connect-src a.example b.example", "media-src 'self'");
  expect([connect.map(allowedBy), mediaSource]).toEqual([["a.example b.example"], false]);
  const long = read("connect-src *", `img-src ${"a".repeat(70_000)}`);
  expect([long.connect.map(allowedBy), long.mediaSource]).toEqual([[""], false]);
});

describe("policies: a request in the name of an origin", () => {
  const may = () => mayFetch("https://site.example", "https://site.example/api/v1/videos/1");
  const silent = () => Promise.resolve(undefined);
  const empty = () => Promise.reject(new Error("Could not establish connection. Receiving end does not exist."));
  beforeEach(() => answers.clear());

  test("every tab is asked, and one that says no is enough", async () => {
    [silent, empty, () => Promise.resolve(true)].forEach((answer, id) => answers.set(id, answer));
    expect(await may()).toBe(true);
    const url = "https://site.example/api/v1/videos/1";
    expect(asked).toEqual(Array(3).fill({ to: "content", pageOrigin: "https://site.example", url }));
    answers.set(3, () => Promise.resolve(false));
    expect(await may()).toBe(false);
  });

  test("a flood of questions does not reach the tabs", async () => {
    answers.set(1, silent);
    const said = await Promise.all(Array.from({ length: 100 }, may));
    expect([said.filter(Boolean).length, asked.length]).toEqual([16, 16]);
    expect(await may()).toBe(true);
  });
});
