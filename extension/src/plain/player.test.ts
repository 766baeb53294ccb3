import { readFileSync } from "node:fs";
import path from "node:path";
import type { HeldVideo } from "./hold";
import { playHeld } from "./player";

const file = new Uint8Array(readFileSync(path.join(__dirname, "../../../lab/stack/sample/media/progressive.mp4")));

/** A SourceBuffer that accepts everything and answers with `updateend`. All its listeners run once. */
class FakeBuffer {
  readonly listeners = new Map<string, Set<() => void>>();
  appended = 0;
  updating = false;

  addEventListener(type: string, listener: () => void): void {
    this.listeners.set(type, (this.listeners.get(type) ?? new Set()).add(listener));
  }
  removeEventListener(type: string, listener: () => void): void {
    this.listeners.get(type)?.delete(listener);
  }
  appendBuffer(): void {
    this.appended += 1;
    queueMicrotask(() => {
      const heard = [...(this.listeners.get("updateend") ?? [])];
      this.listeners.get("updateend")?.clear();
      for (const listener of heard) listener();
    });
  }
}

test("player: appends the file in pieces until the page takes the video, and leaves no listener", async () => {
  Object.assign(globalThis, { MediaSource: { isTypeSupported: () => true } });
  const buffer = new FakeBuffer();
  const source = { readyState: "open", duration: 0, addSourceBuffer: () => buffer };
  const video = Object.assign(new EventTarget(), {
    currentTime: 0,
    playbackRate: 1,
    paused: false,
    autoplay: true,
    preload: "auto",
    buffered: { length: 0 },
  });
  const natives = {
    AbortController,
    fetch: async (_url: string, { headers }: { headers: { Range: string } }) => {
      const [, start, end] = /^bytes=(\d+)-(\d+)$/.exec(headers.Range) ?? [];
      return new Response(file.slice(Number(start), Number(end) + 1), { status: 206, headers: { etag: '"v1"' } });
    },
  };
  const seen = { settled: 0 };
  const restored = new Promise<void>((resolve) => {
    const held = {
      video,
      url: "https://media.example/a.mp4",
      source,
      natives,
      link: { carrier: null, noteDirect: () => undefined },
      settle: () => seen.settled++,
      restore: resolve,
      isHeld: () => buffer.appended < 5,
    };
    playHeld(held as unknown as HeldVideo);
  });
  await restored;
  expect([buffer.appended, seen.settled, source.duration]).toEqual([5, 1, expect.closeTo(24, 0)]);
  expect([...buffer.listeners].map(([type, left]) => [type, left.size]).sort()).toEqual([
    ["error", 0],
    ["updateend", 0],
  ]);
});
