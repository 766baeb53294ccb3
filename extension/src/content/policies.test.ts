import { compilePolicies, parsePolicies } from "../shared/csp";

const SITE = "https://site.example";
const MEDIA = "https://media.example/a/1.mp4";

type Question = { type: "start" | "late" | "metas"; texts?: string[] };
const compiled = (texts: string[]) => compilePolicies(parsePolicies(texts), new URL(SITE));

interface Document {
  headers: string[] | null;
  /** What the background knows a moment later. */
  late?: string[] | null;
  metas?: string[];
}

/** A document that came with these policies; null: the background does not know them. */
async function open({ headers, late = headers, metas = [] }: Document) {
  jest.resetModules();
  const document = Object.assign(new EventTarget(), { querySelectorAll: () => metas.map((content) => ({ content })) });
  let tell!: () => void;
  let isThere = true;
  const told = new Promise<void>((resolve) => (tell = resolve));
  let hear!: (message: object, sender: object, respond: (may: boolean) => void) => unknown;
  const onMessage = { addListener: (listener: typeof hear) => (hear = listener) };
  const sendMessage = async ({ type, texts }: Question) => {
    if (!isThere) throw new Error("Could not establish connection. Receiving end does not exist.");
    await told;
    const known = { start: headers, late, metas: texts! }[type]!;
    return known && compiled(known);
  };
  class MutationObserver {
    observe = (): void => undefined;
  }
  const location = { href: `${SITE}/watch`, origin: SITE };
  Object.assign(globalThis, { chrome: { runtime: { onMessage, sendMessage } }, document, location, MutationObserver });
  const policies = await import("./policies");
  /** What the document answers the background; undefined: nothing. */
  function answer(url: string, pageOrigin = SITE): boolean | undefined {
    let told: boolean | undefined;
    expect(hear({ to: "content", pageOrigin, url }, {}, (may) => (told = may))).toBe(undefined);
    return told;
  }
  const early = { refuses: policies.refuses(MEDIA), answer: answer(`${SITE}/api`) };
  tell();
  await policies.mayPlay("");
  const losesBackground = () => (isThere = false);
  return { ...policies, answer, early, losesBackground };
}

test("policies: a document without one may ask for anything", async () => {
  const { mayPlay, refuses } = await open({ headers: [] });
  expect([await mayPlay(MEDIA), refuses(MEDIA)]).toEqual(["anywhere", false]);
});

test("policies: of unknown ones the browser judges alone, and a plain video stays", async () => {
  const { mayPlay, refuses } = await open({ headers: null });
  expect([await mayPlay(MEDIA), refuses(MEDIA)]).toEqual(["no", false]);
});

test("policies: those that the background learns late count from then on", async () => {
  const { mayPlay, refuses } = await open({ headers: null, late: [] });
  expect([await mayPlay(MEDIA), refuses(MEDIA)]).toEqual(["anywhere", false]);
  const strict = await open({ headers: null, late: ["connect-src 'self'"] });
  expect([await strict.mayPlay(MEDIA), strict.refuses(MEDIA)]).toEqual(["no", true]);
});

test("policies: nothing is allowed before the background has told them", async () => {
  expect((await open({ headers: [] })).early).toEqual({ refuses: true, answer: false });
});

test("policies: a source can name a file or a folder", async () => {
  const { mayPlay, refuses } = await open({ headers: [`connect-src ${MEDIA} https://media.example/b/`] });
  const refused = ["a/1.mp4", "a/2.mp4", "a/1.mp4/x", "b/1.mp4", "b/c/1.mp4", "b"].filter((path) =>
    refuses(`https://media.example/${path}`),
  );
  expect(refused).toEqual(["a/2.mp4", "a/1.mp4/x", "b"]);
  const plays = [await mayPlay(MEDIA), await mayPlay("https://media.example/a/2.mp4"), refuses("x")];
  expect(plays).toEqual(["here", "no", true]);
});

describe("policies: meta elements", () => {
  test("they count, also after the page has removed them", async () => {
    const metas = ["connect-src media.example"];
    const { mayPlay, refuses } = await open({ headers: [], metas });
    metas.pop();
    const refused = [refuses(MEDIA), refuses("https://other.example/1.ts")];
    expect([await mayPlay(MEDIA), ...refused]).toEqual(["here", false, true]);
    metas.push("media-src media.example");
    expect(await mayPlay(MEDIA)).toBe("no");
  });

  test("a new one refuses everything until the background has read it", async () => {
    const metas: string[] = [];
    const { mayPlay, refuses } = await open({ headers: [], metas });
    metas.push("connect-src media.example");
    expect([refuses(MEDIA), await mayPlay(MEDIA), refuses(MEDIA)]).toEqual([true, "here", false]);
  });

  test("one that nobody reads refuses everything", async () => {
    const metas: string[] = [];
    const { mayPlay, refuses, losesBackground } = await open({ headers: [], metas });
    losesBackground();
    metas.push("connect-src *");
    expect([await mayPlay(MEDIA), refuses(MEDIA)]).toEqual(["no", true]);
  });

  test("more than 64 refuse everything", async () => {
    const metas = Array.from({ length: 64 }, (_, n) => `connect-src ${"* ".repeat(n + 1)}`);
    const { mayPlay, refuses } = await open({ headers: [], metas });
    expect([await mayPlay(MEDIA), refuses(MEDIA)]).toEqual(["here", false]);
    metas.push("connect-src https:");
    expect([await mayPlay(MEDIA), refuses(MEDIA)]).toEqual(["no", true]);
  });
});

describe("policies: the background asks all documents of an origin", () => {
  test("only one whose policy refuses the request says no", async () => {
    const { answer } = await open({ headers: [`connect-src ${SITE}/static/`] });
    const asked = [answer(`${SITE}/api`), answer(`${SITE}/static/1.json`), answer(MEDIA, "https://media.example")];
    expect(asked).toEqual([false, undefined, undefined]);
  });

  test("one without a policy says nothing", async () => {
    expect((await open({ headers: [] })).answer(`${SITE}/api`)).toBe(undefined);
  });

  test("one whose policies are unknown says no", async () => {
    expect((await open({ headers: null })).answer(`${SITE}/api`)).toBe(false);
  });

  test("meta elements count", async () => {
    const { answer } = await open({ headers: [], metas: ["connect-src 'none'"] });
    expect(answer(`${SITE}/api`)).toBe(false);
  });
});
