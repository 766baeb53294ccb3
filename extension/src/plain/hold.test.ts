import type { Natives } from "../page/natives";
import { addAccessors, MEDIA_FIELDS } from "../../test/accessors";
import type { Heard } from "../shared/plain";
import type { HeldVideo } from "./hold";

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
  readonly sought: number[] = [];
  #time = 0;
  playbackRate = 1;
  isEnded = false;
  get ended(): boolean {
    return this.isEnded;
  }
  told: Record<string, unknown> = { duration: 24, readyState: 4, seeking: false };

  get currentTime(): number {
    return this.#time;
  }
  set currentTime(sec: number) {
    this.#time = sec;
    this.sought.push(sec);
  }
  get src(): string {
    return this.attributes.get("src") ?? "";
  }
  set src(address: string) {
    this.attributes.set("src", address);
    this.select();
  }
  get duration(): unknown {
    return this.told.duration;
  }
  get readyState(): unknown {
    return this.told.readyState;
  }
  get seeking(): unknown {
    return this.told.seeking;
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
  pause(): void {
    this.paused = true;
  }
  load(): void {
    this.select();
  }
  select(): void {
    this.paused = true;
    this.told = { duration: NaN, readyState: 0, seeking: false };
    const next = this.attributes.get("src") ?? this.sources[0];
    this.loads.push(next ?? "nothing");
    if (next !== undefined) this.chosen = next;
  }
}

addAccessors(
  FakeVideo.prototype,
  MEDIA_FIELDS.filter((name) => !(name in FakeVideo.prototype)),
);

const A = "https://media.example/a.mp4";
const B = "https://media.example/b.mp4";
const OURS = /^blob:/;
const timers: (() => void)[] = [];
const natives = {
  play: FakeVideo.prototype.play,
  setTimeout: (callback: () => void) => timers.push(callback),
  clearTimeout: () => undefined,
} as unknown as Natives;
let script: typeof import("./hold");

beforeAll(async () => {
  let made = 0;
  class FakeSource extends EventTarget {
    readyState = "closed";
  }
  Object.assign(URL, {
    createObjectURL: () => `blob:https://page.example/${++made}`,
    revokeObjectURL: () => undefined,
  });
  Object.assign(globalThis, { HTMLMediaElement: FakeVideo, HTMLVideoElement: FakeVideo, Element: FakeVideo });
  Object.assign(globalThis, { MediaSource: FakeSource });
  script = await import("./hold");
  script.dressVideos();
});
beforeEach(() => void timers.splice(0));

const asVideo = (video: FakeVideo): HTMLVideoElement => video as unknown as HTMLVideoElement;
const fileOf = (video: FakeVideo): string | undefined => script.fileOf(asVideo(video));
const hides = (video: FakeVideo, type: string): boolean => script.hides(asVideo(video), type);
const attributeOf = (video: FakeVideo): string | undefined => video.attributes.get("src");

const heardOf = (types: readonly string[]): Heard => Object.fromEntries(types.map((type) => [type, true]));

/** A video whose file the browser has loaded. */
function make(given: Partial<FakeVideo> = { src: A }): FakeVideo {
  const video = Object.assign(new FakeVideo(), given);
  if (video.loads.length === 0) video.load();
  video.told = { duration: 24, readyState: 4, seeking: false };
  return video;
}

function take(video: FakeVideo, heard: readonly string[] = []): { own: HeldVideo; types: string[] } {
  const types: string[] = [];
  const own = script.hold(asVideo(video), fileOf(video)!, heardOf(heard), natives, (type) => types.push(type));
  expect(attributeOf(video)).toMatch(OURS);
  return { own, types };
}

function held(given?: Partial<FakeVideo>, heard?: readonly string[]): FakeVideo {
  const video = make(given);
  take(video, heard);
  return video;
}

describe("hold: what the page sees and does with a held video", () => {
  test("the page reads its own address and the file's duration", () => {
    const video = held();
    video.told.duration = 23.9;
    expect([video.src, video.currentSrc, video.duration, video.currentTime]).toEqual([A, A, 24, 0]);
  });

  test("the page reads the state before the change until the file has come as far again", () => {
    const video = held({ src: A }, ["loadedmetadata", "loadeddata", "playing"]);
    expect([video.readyState, hides(video, "emptied"), hides(video, "loadedmetadata")]).toEqual([4, true, true]);
    expect([video.readyState, hides(video, "loadeddata"), video.readyState]).toEqual([4, true, 0]);
    expect(["timeupdate", "loadeddata", "durationchange"].map((type) => hides(video, type))).toEqual([
      false,
      false,
      true,
    ]);
  });

  test("a seek to the start that the browser would not make is made, and the page reads that the video seeks", () => {
    const video = held({ src: A, currentTime: 7 }, ["loadedmetadata"]);
    video.currentTime = 0;
    expect([video.seeking, hides(video, "seeking")]).toEqual([true, false]);
    video.sought.splice(0);
    expect([hides(video, "loadedmetadata"), video.sought]).toEqual([true, [0]]);
    expect([hides(video, "seeked"), video.seeking]).toEqual([false, false]);
  });

  test("the page sees the video as it is if an event does not come in time", () => {
    const video = held({ src: A }, ["loadedmetadata", "canplay"]);
    hides(video, "loadedmetadata");
    expect(video.readyState).toBe(4);
    timers.at(-1)?.();
    expect([video.readyState, hides(video, "canplay")]).toEqual([0, false]);
  });

  test("a video that played goes on; one that the page has paused stays so", () => {
    const playing = make();
    void playing.play();
    take(playing);
    expect([playing.paused, script.hasInterrupted(asVideo(playing), 0)]).toEqual([false, true]);
    expect(script.hasInterrupted(asVideo(playing), performance.now() + 1)).toBe(false);
    playing.pause();
    expect(script.hasInterrupted(asVideo(playing), 0)).toBe(false);
  });

  test("after another `<source>` and load(), the new file is loaded and can be held", () => {
    const video = held({ sources: [A] });
    video.sources = [B];
    video.load();
    expect([video.hasAttribute("src"), video.loads.at(-1), fileOf(video)]).toEqual([false, B, B]);
    take(video);
    expect(video.currentSrc).toBe(B);
  });

  test("the page hears the events of its own load()", () => {
    const video = held({ src: A }, ["loadedmetadata"]);
    video.src = B;
    expect(["abort", "emptied", "loadstart"].map((type) => hides(video, type))).toEqual([false, false, false]);
  });

  test("after load() to play again, the browser keeps the file", () => {
    const video = held();
    video.load();
    expect([attributeOf(video), video.loads.at(-1), fileOf(video)]).toEqual([A, A, undefined]);
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
    const copy = make({ src: attributeOf(video)! });
    expect([copy.src, fileOf(copy), attributeOf(copy), fileOf(copy)]).toEqual([A, undefined, A, A]);
    take(copy);
    expect(attributeOf(copy)).not.toBe(attributeOf(video));
  });
});

describe("hold: giving the file back", () => {
  test("happens if no data arrives in time, and the video keeps playing", () => {
    const video = held();
    void video.play();
    timers.forEach((fire) => fire());
    expect([attributeOf(video), video.paused]).toEqual([A, false]);
  });

  test("happens at an error; the page hears only errors of the file itself", () => {
    const video = make();
    const { own, types } = take(video);
    expect([hides(video, "error"), attributeOf(video), own.isHeld(), types]).toEqual([true, A, false, ["error"]]);
    expect(hides(video, "error")).toBe(false);
  });
});

test.each([[`${A}#t=30`], ["blob:https://page.example/own"]])("hold: %s is left alone", (src) =>
  expect(fileOf(make({ src }))).toBeUndefined(),
);

test("hold: a video in a page that is left loads nothing before it goes on with its file", () => {
  const video = make();
  const { own } = take(video);
  video.paused = false;
  const { length } = video.loads;
  own.leave();
  expect([attributeOf(video), video.loads.slice(length)]).toEqual([undefined, ["nothing"]]);
  timers.at(-1)?.();
  expect([attributeOf(video), video.loads.at(-1), video.paused]).toEqual([A, A, false]);
});

test("hold: a page that gives its video another file meanwhile keeps that", () => {
  const video = make();
  const { own } = take(video);
  own.leave();
  video.src = B;
  timers.at(-1)?.();
  expect([attributeOf(video), video.loads.at(-1)]).toEqual([B, B]);
});
