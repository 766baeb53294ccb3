import type { Link } from "../page/link";
import type { Natives } from "../page/natives";
import { PLAIN_READY_EVENT } from "../shared/names";
import type { PlainTaker } from "../shared/plain";

/** The parts of a media element that matter here: what it is told to load, and what it loads. */
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
/** A link that answers nothing. */
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

/** Does what the page script does when `video` begins to load. Returns its `src` attribute. */
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

describe("hold: what the page sees and does with a held video", () => {
  test("the page reads its own address", () => {
    const video = held();
    expect([video.src, video.currentSrc]).toEqual([A, A]);
  });

  test("after another `<source>` and load(), the new file is loaded and held", () => {
    const video = held({ sources: [A] });
    video.sources = [B];
    video.load();
    expect([video.hasAttribute("src"), video.loads.at(-1)]).toEqual([false, B]);
    expect(take(video)).toMatch(OURS);
    expect(video.currentSrc).toBe(B);
  });

  test("after load() to play again, the browser keeps the file", () => {
    const video = held();
    video.load();
    expect([video.attributes.get("src"), video.loads.at(-1)]).toEqual([A, A]);
    expect(take(video)).toBe(A);
    const count = video.loads.length;
    timers.forEach((fire) => fire());
    expect(video.loads.length).toBe(count);
  });

  test("after the attribute is removed and load() is called, the video stays empty", () => {
    const video = held();
    video.removeAttribute("src");
    video.load();
    const count = video.loads.length;
    timers.forEach((fire) => fire());
    expect([video.loads.at(-1), video.loads.length]).toEqual(["nothing", count]);
  });

  test("a copy of the video has the page's address and is held separately", () => {
    const video = held();
    const copy = make({ src: video.attributes.get("src")! });
    expect([copy.src, take(copy)]).toEqual([A, A]);
    const address = take(copy);
    expect(address).toMatch(OURS);
    expect(address).not.toBe(video.attributes.get("src"));
  });
});

describe("hold: giving the file back", () => {
  test("happens if no data arrives in time, and the video keeps playing", () => {
    const video = held();
    void video.play();
    timers.forEach((fire) => fire());
    expect([video.attributes.get("src"), video.paused]).toEqual([A, false]);
  });

  test("happens at an error before the first data; the page hears only errors of the file itself", () => {
    const video = held();
    let heard = 0;
    video.addEventListener("error", () => heard++);
    video.dispatchEvent(new Event("error", { cancelable: true }));
    expect([video.attributes.get("src"), heard]).toEqual([A, 0]);
    video.dispatchEvent(new Event("error"));
    expect(heard).toBe(1);
  });

  test("does not happen at an error after the first data; the page hears the error", async () => {
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

  test("any video while requests are native", () => expect(take(make(), true)).toBe(A));

  test("a video with `preload=none` until it plays", () => {
    const video = make({ src: A, preload: "none" });
    expect(take(video)).toBe(A);
    void video.play();
    video.dispatchEvent(new Event("play"));
    expect([video.attributes.get("src"), video.paused]).toEqual([expect.stringMatching(OURS), false]);
  });

  test("a video that gets another source before it plays", () => {
    const video = make({ src: A, preload: "none" });
    take(video);
    video.src = "blob:https://page.example/other";
    void video.play();
    video.dispatchEvent(new Event("play"));
    expect(video.attributes.get("src")).toBe("blob:https://page.example/other");
  });
});
