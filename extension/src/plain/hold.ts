/**
 * Hold: a `<video>` put on a MediaSource in place of its file, in the same state, and its file given back. While it is
 * held the page reads its own address from `src` and `currentSrc`, a `play` under way outlives the change, and its
 * `load` finds its file as the page left it. One that already plays by a call of the page's, before this script was
 * there, is left alone.
 */
import type { Link } from "../page/link";
import { wrapFunction, type Natives } from "../page/natives";

/** Without data for so long the browser gets its file. */
const HOLD_MS = 4000;
/** A file's address without a fragment, which would be lost: it may say where to begin (Media Fragments URI 1.0). */
const WHOLE_FILE = /^https?:[^#]*#?$/;

export interface HeldVideo {
  video: HTMLVideoElement;
  /** The file's address. */
  url: string;
  source: MediaSource;
  link: Link;
  natives: Natives;
  /** Its data comes. */
  settle(): void;
  /**
   * Gives the file back to the browser, at the same place and in the same state, unless the page has taken the video
   * off `source`.
   */
  restore(): void;
  /** Whether the video still is on `source`. */
  isHeld(): boolean;
}

/** What a video plays by our hand, or played: `url` is the browser's for good once `isOver`. */
interface State {
  url: string;
  address: string;
  /** The page named the file in the video's own attribute, not in a `<source>`. */
  hadAttribute: boolean;
  isOver: boolean;
}

const prototype = HTMLMediaElement.prototype;
const native = {
  src: Object.getOwnPropertyDescriptor(prototype, "src") ?? {},
  currentSrc: Object.getOwnPropertyDescriptor(prototype, "currentSrc") ?? {},
  play: prototype.play,
  load: prototype.load,
};
const states = new WeakMap<HTMLMediaElement, State>();
/** The file that each address of ours stands for. */
const urls = new Map<string, string>();

/**
 * Undefined for a video that is not to be held. `isEarly`: no `play` of it came before `dressVideos`, so that none can
 * be lost.
 */
export function hold(video: HTMLVideoElement, link: Link, natives: Natives, isEarly: boolean): HeldVideo | undefined {
  const url = String(native.currentSrc.get?.call(video) ?? "");
  const copied = urls.get(url);
  if (copied !== undefined && states.get(video)?.address !== url) reload(video, () => setSource(video, copied));
  const isPlayedByPage = !isEarly && !video.paused && !video.autoplay;
  if (
    !WHOLE_FILE.test(url) ||
    states.get(video)?.url === url ||
    isPlayedByPage ||
    video.crossOrigin === "use-credentials"
  )
    return undefined;
  const source = new MediaSource();
  const state: State = {
    url,
    address: URL.createObjectURL(source),
    hadAttribute: video.hasAttribute("src"),
    isOver: false,
  };
  states.set(video, state);
  urls.set(state.address, url);
  const isHeld = (): boolean => isOn(video, state);
  const restore = (): void => {
    if (isHeld()) {
      reload(video, () => {
        giveBack(video, state);
        native.load.call(video);
      });
    }
    settle();
    URL.revokeObjectURL(state.address);
  };
  /**
   * Before there is data, as where the page's policy forbids such addresses (CSP `media-src`): the page hears of
   * nothing.
   */
  const fail = (event: Event): void => {
    if (!isHeld()) return;
    event.stopImmediatePropagation();
    restore();
  };
  const timer = natives.setTimeout(restore, HOLD_MS);
  const settle = (): void => {
    natives.clearTimeout(timer);
    video.removeEventListener("error", fail, { capture: true });
  };
  video.addEventListener("error", fail, { capture: true });
  reload(video, () => setSource(video, state.address));
  return { video, url, source, link, natives, settle, restore, isHeld };
}

/** Whether the page has left it where we put it. `currentSrc` says what was chosen last, not what is left of it. */
function isOn(video: HTMLMediaElement, { address, isOver }: State): boolean {
  return !isOver && native.src.get?.call(video) === address && video.srcObject === null;
}

function setSource(video: HTMLMediaElement, address: string): void {
  native.src.set?.call(video, address);
}

/** The attribute as the page left it, for the `load` that follows. */
function giveBack(video: HTMLMediaElement, state: State): void {
  state.isOver = true;
  if (state.hadAttribute) setSource(video, state.url);
  else video.removeAttribute("src");
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
      const value = Reflect.apply(target, video, []) as string;
      return urls.get(value) ?? value;
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
  prototype.load = wrapFunction(native.load, (target, receiver, args) => {
    const video = receiver as HTMLMediaElement;
    const state = states.get(video);
    if (state !== undefined && isOn(video, state)) giveBack(video, state);
    return Reflect.apply(target, video, args);
  });
}
