import type { Link } from "../page/link";
import type { Natives } from "../page/natives";
import { PLAIN_READY_EVENT } from "../shared/names";
import type { PlainTaker } from "../shared/plain";

/** As much of a media element as matters here: what it is told to load, and what it chose to. */
class FakeVideo extends EventTarget {
  readonly attributes = new Map<string, string>();
  /** Addresses of its `<source>` children. */
  sources: string[] = [];
  readonly loads: string[] = [];
  chosen = "";
  paused = true;
  autoplay = false;
  preload = "metadata";
  crossOrigin: string | null = null;
  srcObject: object | null = null;
  currentTime = 0;
  playbackRate = 1;

  get src(): string {
    return this.attributes.get("src") ?? "";
  }
  set src(address: string) {
    this.attributes.set("src", address);
    this.select();
  }
  get currentSrc(): string {
    return this.chosen;
  }
  hasAttribute(name: string): boolean {
    return this.attributes.has(name);
  }
  removeAttribute(name: string): void {
    this.attributes.delete(name);
  }
  play(): Promise<void> {
    this.paused = false;
    return Promise.resolve();
  }
  load(): void {
    this.select();
  }
  select(): void {
    this.paused = true;
    const next = this.attributes.get("src") ?? this.sources[0];
    this.loads.push(next ?? "nothing");
    if (next !== undefined) this.chosen = next;
  }
}

const A = "https://media.example/a.mp4";
const B = "https://media.example/b.mp4";
const OURS = /^blob:/;
const timers: (() => void)[] = [];
const natives = {
  setTimeout: (callback: () => void) => timers.push(callback),
  clearTimeout: () => undefined,
} as unknown as Natives;
/** Nothing comes over it. */
const linkOf = (isNative: boolean): Link =>
  ({ isNative, ready: () => new Promise(() => undefined) }) as unknown as Link;
let script: PlainTaker;

beforeAll(async () => {
  const document = new EventTarget();
  document.addEventListener(PLAIN_READY_EVENT, (event) => (script = (event as CustomEvent<PlainTaker>).detail));
  let made = 0;
  class FakeSource extends EventTarget {
    readyState = "closed";
  }
  Object.assign(URL, {
    createObjectURL: () => `blob:https://page.example/${++made}`,
    revokeObjectURL: () => undefined,
  });
  Object.assign(globalThis, { window: globalThis, document, HTMLMediaElement: FakeVideo, MediaSource: FakeSource });
  await import("./index");
});
beforeEach(() => void timers.splice(0));

const make = (given: Partial<FakeVideo> = { src: A }): FakeVideo => Object.assign(new FakeVideo(), given);

/** What the page script does when `video` begins to load. */
function take(video: FakeVideo, isNative = false): string | undefined {
  script(video as unknown as HTMLVideoElement, linkOf(isNative), natives);
  return video.attributes.get("src");
}

function held(given?: Partial<FakeVideo>): FakeVideo {
  const video = make(given);
  if (video.loads.length === 0) video.load();
  expect(take(video)).toMatch(OURS);
  return video;
}

describe("hold: what the page sees and does", () => {
  test("it reads its own address", () => {
    const video = held();
    expect([video.src, video.currentSrc]).toEqual([A, A]);
  });

  test("another `<source>` and load(): it is loaded, and held in its turn", () => {
    const video = held({ sources: [A] });
    video.sources = [B];
    video.load();
    expect([video.hasAttribute("src"), video.loads.at(-1)]).toEqual([false, B]);
    expect(take(video)).toMatch(OURS);
    expect(video.currentSrc).toBe(B);
  });

  test("load() to play it again: the browser has the file from then on", () => {
    const video = held();
    video.load();
    expect([video.attributes.get("src"), video.loads.at(-1)]).toEqual([A, A]);
    expect(take(video)).toBe(A);
    const count = video.loads.length;
    timers.forEach((fire) => fire());
    expect(video.loads.length).toBe(count);
  });

  test("without its attribute and with load() it is closed, and stays so", () => {
    const video = held();
    video.removeAttribute("src");
    video.load();
    const count = video.loads.length;
    timers.forEach((fire) => fire());
    expect([video.loads.at(-1), video.loads.length]).toEqual(["nothing", count]);
  });

  test("a copy of it has the page's address, and is held by itself", () => {
    const video = held();
    const copy = make({ src: video.attributes.get("src")! });
    expect([copy.src, take(copy)]).toEqual([A, A]);
    const address = take(copy);
    expect(address).toMatch(OURS);
    expect(address).not.toBe(video.attributes.get("src"));
  });
});

describe("hold: what is given back", () => {
  test("without data in time, as it played", () => {
    const video = held();
    void video.play();
    timers.forEach((fire) => fire());
    expect([video.attributes.get("src"), video.paused]).toEqual([A, false]);
  });

  test("at an error before the first data, of which the page hears nothing; of the file's own it does", () => {
    const video = held();
    let heard = 0;
    video.addEventListener("error", () => heard++);
    video.dispatchEvent(new Event("error", { cancelable: true }));
    expect([video.attributes.get("src"), heard]).toEqual([A, 0]);
    video.dispatchEvent(new Event("error"));
    expect(heard).toBe(1);
  });

  test("not at an error once there is data: the page hears of it", async () => {
    const { hold } = await import("./hold");
    const video = make();
    const own = hold(video as unknown as HTMLVideoElement, linkOf(false), natives, true);
    own?.settle();
    let heard = 0;
    video.addEventListener("error", () => heard++);
    video.dispatchEvent(new Event("error"));
    expect([own?.isHeld(), heard]).toEqual([true, 1]);
  });
});

describe("hold: what is left alone", () => {
  test.each([[`${A}#t=30`], ["blob:https://page.example/own"]])("%s", (src) => expect(take(make({ src }))).toBe(src));

  test("everything where requests are native", () => expect(take(make(), true)).toBe(A));

  test("a video with `preload=none`, until it plays", () => {
    const video = make({ src: A, preload: "none" });
    expect(take(video)).toBe(A);
    void video.play();
    video.dispatchEvent(new Event("play"));
    expect([video.attributes.get("src"), video.paused]).toEqual([expect.stringMatching(OURS), false]);
  });

  test("one that is given something else before it plays", () => {
    const video = make({ src: A, preload: "none" });
    take(video);
    video.src = "blob:https://page.example/other";
    void video.play();
    video.dispatchEvent(new Event("play"));
    expect(video.attributes.get("src")).toBe("blob:https://page.example/other");
  });
});
