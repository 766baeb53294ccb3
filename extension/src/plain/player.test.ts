import { getEventListeners } from "node:events";
import { readFileSync } from "node:fs";
import path from "node:path";
import { addAccessors, MEDIA_FIELDS } from "../../test/accessors";
import type { HeldVideo } from "./hold";
import type { Link } from "../page/link";
import type { Natives } from "../page/natives";

const file = new Uint8Array(readFileSync(path.join(__dirname, "../../../lab/stack/sample/media/progressive.mp4")));

/** A SourceBuffer that accepts everything and answers with `updateend`. All its listeners run once. */
class FakeBuffer extends EventTarget {
  appended = 0;
  updating = false;
  appendBuffer(): void {
    this.appended += 1;
    queueMicrotask(() => this.dispatchEvent(new Event("updateend")));
  }
}
class FakeSource extends EventTarget {
  static isTypeSupported = (): boolean => true;
  readyState = "open";
  duration = 0;
  readonly buffer = new FakeBuffer();
  addSourceBuffer(): FakeBuffer {
    return this.buffer;
  }
}
class FakeVideo extends EventTarget {
  readonly buffered = new FakeRanges();
}
class FakeRanges {
  get length(): number {
    return 0;
  }
}
addAccessors(FakeBuffer.prototype, ["updating"]);
addAccessors(FakeSource.prototype, ["readyState", "duration"]);
addAccessors(FakeVideo.prototype, MEDIA_FIELDS);

const A = "https://media.example/a.mp4";

function make() {
  const media = new FakeSource();
  const { buffer } = media;
  const video = Object.assign(new FakeVideo(), {
    readyState: 4,
    currentTime: 0,
    duration: 25,
    playbackRate: 1,
    paused: false,
    autoplay: true,
    preload: "auto",
    ended: false,
    seeking: false,
    error: null as object | null,
  });
  const asked: string[] = [];
  const natives = {
    AbortController,
    fetch: async (_url: string, { headers }: { headers: { Range: string } }) => {
      asked.push(headers.Range);
      const [, start, end] = /^bytes=(\d+)-(\d+)$/.exec(headers.Range) ?? [];
      return new Response(file.slice(Number(start), Number(end) + 1), { status: 206, headers: { etag: '"v1"' } });
    },
    listen: (to: EventTarget, type: string, hear: () => void) => to.addEventListener(type, hear),
  } as unknown as Natives;
  const link = { carrier: null, noteDirect: () => undefined } as unknown as Link;
  const seen = { holds: [] as number[], settled: 0, url: A as string | undefined };
  let restore!: () => void;
  const restored = new Promise<void>((resolve) => (restore = resolve));
  const held: HeldVideo = {
    source: media as unknown as MediaSource,
    durationSec: video.duration,
    settle: () => void seen.settled++,
    restore,
    leave: restore,
    isHeld: () => buffer.appended < 5,
  };
  const begin = async (): Promise<void> => {
    jest.resetModules();
    jest.doMock("./hold", () => ({ fileOf: () => seen.url, hold: () => (seen.holds.push(asked.length), held) }));
    Object.assign(globalThis, { HTMLMediaElement: FakeVideo, HTMLVideoElement: FakeVideo, TimeRanges: FakeRanges });
    Object.assign(globalThis, { MediaSource: FakeSource, SourceBuffer: FakeBuffer });
    const { playFile } = await import("./player");
    playFile(video as unknown as HTMLVideoElement, A, {}, link, natives);
  };
  return { buffer, media, video, asked, seen, restored, begin };
}

const settle = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 50));

test("player: appends the file in pieces until the page takes the video, and leaves no listener", async () => {
  const { buffer, media, seen, restored, begin } = make();
  await begin();
  await restored;
  // The browser's duration counts, not the one that the index tells.
  expect([buffer.appended, seen.settled, media.duration]).toEqual([5, 1, 25]);
  expect(["error", "updateend"].map((type) => getEventListeners(buffer, type).length)).toEqual([0, 0]);
});

test("player: takes the video when the browser knows the file and the pieces at the playhead have come", async () => {
  const { video, seen, asked, begin } = make();
  video.readyState = 0;
  await begin();
  await settle();
  expect([seen.holds, asked]).toEqual([[], ["bytes=0-65535"]]);
  video.readyState = 1;
  video.dispatchEvent(new Event("loadedmetadata"));
  await settle();
  expect(seen.holds).toEqual([2]);
});

test.each<[string, (made: ReturnType<typeof make>) => void]>([
  ["the browser cannot play the file", ({ video }) => (video.error = {})],
  ["the video has ended", ({ video }) => (video.ended = true)],
  ["the page gave it another file", ({ seen }) => (seen.url = "https://media.example/b.mp4")],
])("player: leaves the video to the browser if %s", async (_name, change) => {
  const made = make();
  change(made);
  await made.begin();
  await settle();
  expect(made.seen.holds).toEqual([]);
});
