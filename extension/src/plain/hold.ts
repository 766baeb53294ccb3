/**
 * Hold: a `<video>` put on a MediaSource in place of its file, in the same state, and its file given back. While it is held the
 * page reads its own address from `src` and `currentSrc`, and a `play` under way outlives the change. One that already
 * plays by a call of the page's, before this script was there, is left alone.
 */
import type { Link } from "../page/link";
import { wrapFunction, type Natives } from "../page/natives";

/** Without data for so long the browser gets its file. */
const HOLD_MS = 4000;

export interface HeldVideo {
  video: HTMLVideoElement;
  /** The file's address. */
  url: string;
  source: MediaSource;
  link: Link;
  natives: Natives;
  /** Its data comes. */
  settle(): void;
  /** Gives the file back to the browser, at the same place and in the same state. */
  restore(): void;
  /** Whether the video still is on `source`. */
  isHeld(): boolean;
}

/** What a video plays by our hand, or played: `url` is the browser's for good once `isOver`. */
interface State {
  url: string;
  address: string;
  isOver: boolean;
}

const prototype = HTMLMediaElement.prototype;
const native = {
  src: Object.getOwnPropertyDescriptor(prototype, "src") ?? {},
  currentSrc: Object.getOwnPropertyDescriptor(prototype, "currentSrc") ?? {},
  play: prototype.play,
};
const states = new WeakMap<HTMLMediaElement, State>();

/** Undefined for a video that is not to be held. `isEarly`: it began to load after `dressVideos`, so that no `play` can be lost. */
export function hold(video: HTMLVideoElement, link: Link, natives: Natives, isEarly: boolean): HeldVideo | undefined {
  const url = addressOf(video);
  const isPlayedByPage = !isEarly && !video.paused && !video.autoplay;
  if (states.get(video)?.url === url || states.get(video)?.address === url || isPlayedByPage || video.crossOrigin === "use-credentials") return undefined;
  const hadAttribute = video.hasAttribute("src");
  const source = new MediaSource();
  const state: State = { url, address: URL.createObjectURL(source), isOver: false };
  states.set(video, state);
  const isHeld = (): boolean => !state.isOver && addressOf(video) === state.address;
  const restore = (): void => {
    if (isHeld()) {
      state.isOver = true;
      reload(video, () => (hadAttribute ? setSource(video, url) : unsetSource(video)));
    }
    settle();
    URL.revokeObjectURL(state.address);
  };
  const timer = natives.setTimeout(restore, HOLD_MS);
  const settle = (): void => natives.clearTimeout(timer);
  reload(video, () => setSource(video, state.address));
  return { video, url, source, link, natives, settle, restore, isHeld };
}

function addressOf(video: HTMLVideoElement): string {
  return String(native.currentSrc.get?.call(video) ?? "");
}

function setSource(video: HTMLVideoElement, address: string): void {
  native.src.set?.call(video, address);
}

/** Back to the addresses in its `<source>` children. */
function unsetSource(video: HTMLVideoElement): void {
  video.removeAttribute("src");
  video.load();
}

/** Loads something else in the same place and state. */
function reload(video: HTMLVideoElement, change: () => void): void {
  const { currentTime, paused, playbackRate } = video;
  change();
  video.playbackRate = playbackRate;
  if (currentTime > 0) video.currentTime = currentTime;
  if (!paused) Promise.resolve(native.play.call(video)).catch(() => undefined);
}

/** Puts the page's view of its videos in front of what they play by our hand. */
export function dressVideos(): void {
  for (const name of ["src", "currentSrc"] as const) {
    const { get } = native[name];
    if (get === undefined) continue;
    const told = wrapFunction(get, (target, video) => {
      const [value, state] = [Reflect.apply(target, video, []) as unknown, states.get(video as HTMLMediaElement)];
      return state !== undefined && value === state.address ? state.url : value;
    });
    Object.defineProperty(prototype, name, { ...native[name], get: told });
  }
  prototype.play = wrapFunction(native.play, (target, receiver, args) => {
    const video = receiver as HTMLMediaElement;
    const before = JSON.stringify(states.get(video));
    const playing = Reflect.apply(target, video, args) as Promise<void> | undefined;
    return playing?.catch((error: unknown) => {
      const isOurs = JSON.stringify(states.get(video)) !== before && !video.paused;
      return isOurs ? native.play.call(video) : Promise.reject(error);
    });
  });
}
