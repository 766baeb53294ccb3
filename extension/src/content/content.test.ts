import { NEED_EVENT } from "../shared/names";

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
  need(): void {
    this.dispatchEvent(new Event(NEED_EVENT));
  }
  show(isShown: boolean): void {
    this.hidden = !isShown;
    this.dispatchEvent(new Event("visibilitychange"));
  }
}

/** A page with the content script. */
async function start({ isShown } = { isShown: true }): Promise<PageDocument> {
  jest.resetModules();
  const page = new PageDocument();
  page.hidden = !isShown;
  const nothing = { addListener: () => undefined };
  const chrome = {
    runtime: { id: "own", getURL: (name: string) => name, sendMessage: () => Promise.resolve(), onMessage: nothing },
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
  page.need();
  expect(page.frameCount).toBe(1);
});

test("content: a hidden page waits before it gets a frame", async () => {
  const page = await start({ isShown: false });
  page.need();
  jest.advanceTimersByTime(1000);
  expect(page.frameCount).toBe(0);
  jest.advanceTimersByTime(LONG_MS - 1000);
  expect(page.frameCount).toBe(1);
});

test("content: a page that comes to the front gets its frame at once, and only one", async () => {
  const page = await start({ isShown: false });
  page.need();
  page.show(true);
  expect(page.frameCount).toBe(1);
  page.show(false);
  page.show(true);
  jest.advanceTimersByTime(LONG_MS);
  expect(page.frameCount).toBe(1);
});

test("content: a page that needs no port gets no frame when it is shown", async () => {
  const page = await start({ isShown: false });
  page.show(true);
  jest.advanceTimersByTime(LONG_MS);
  expect(page.frameCount).toBe(0);
});
