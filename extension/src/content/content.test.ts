import { compilePolicies, NONE } from "../shared/csp";
import { NEED_EVENT, SWITCH_EVENT } from "../shared/names";

/** Longer than any wait of a hidden page, and shorter than the life of a frame without a port. */
const LONG_MS = 9000;

class PageDocument extends EventTarget {
  frameCount = 0;
  hidden = false;
  readonly body = { append: (): void => void this.frameCount++ };
  createElement(): object {
    return { style: {}, attachShadow: () => ({ append: () => undefined }), remove: () => void this.frameCount-- };
  }
  querySelectorAll(): [] {
    return [];
  }
  async need(): Promise<void> {
    this.dispatchEvent(new Event(NEED_EVENT));
    await jest.advanceTimersByTimeAsync(0);
  }
  async show(isShown: boolean): Promise<void> {
    this.hidden = !isShown;
    this.dispatchEvent(new Event("visibilitychange"));
    await jest.advanceTimersByTimeAsync(0);
  }
}

/** A page with the content script. */
async function start({ isShown = true, connect = [] as string[] } = {}): Promise<PageDocument> {
  jest.resetModules();
  const page = new PageDocument();
  page.hidden = !isShown;
  const nothing = { addListener: () => undefined };
  const chrome = {
    runtime: {
      id: "own",
      getURL: (name: string) => name,
      sendMessage: () => Promise.resolve({ connect, mediaSource: true }),
      onMessage: nothing,
    },
    storage: { local: { get: () => Promise.resolve({}) }, onChanged: nothing },
  };
  const location = { href: "https://site.example/", origin: "https://site.example", ancestorOrigins: [] };
  class MutationObserver {
    observe = (): void => undefined;
    disconnect = (): void => undefined;
  }
  Object.assign(globalThis, { chrome, document: page, window: new EventTarget(), location, MutationObserver });
  (await import("./content")).startContent({ keepFrame: true });
  return page;
}

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

test("content: the page in front gets its frame at once", async () => {
  const page = await start();
  await page.need();
  expect(page.frameCount).toBe(1);
});

test("content: a hidden page waits before it gets a frame", async () => {
  const page = await start({ isShown: false });
  await page.need();
  await jest.advanceTimersByTimeAsync(1000);
  expect(page.frameCount).toBe(0);
  await jest.advanceTimersByTimeAsync(LONG_MS - 1000);
  expect(page.frameCount).toBe(1);
});

test("content: a page that comes to the front gets its frame at once, and only one", async () => {
  const page = await start({ isShown: false });
  await page.need();
  await page.show(true);
  expect(page.frameCount).toBe(1);
  await page.show(false);
  await page.show(true);
  await jest.advanceTimersByTimeAsync(LONG_MS);
  expect(page.frameCount).toBe(1);
});

test("content: a page that needs no port gets no frame when it is shown", async () => {
  const page = await start({ isShown: false });
  await page.show(true);
  await jest.advanceTimersByTimeAsync(LONG_MS);
  expect(page.frameCount).toBe(0);
});

test("content: a document that may fetch nothing gets no frame, and its page hears `off`", async () => {
  const page = await start({ connect: [compilePolicies([NONE], new URL("https://site.example/")).connect[0]!] });
  const told: unknown[] = [];
  page.addEventListener(SWITCH_EVENT, (event) => told.push((event as CustomEvent).detail));
  await page.need();
  expect([page.frameCount, told]).toEqual([0, ["off"]]);
});
