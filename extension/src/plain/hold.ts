/**
 * Hold: puts a `<video>` on a MediaSource in place of its file, keeps its state, and gives the file back. While a video
 * is held, the page reads the file's address from `src` and `currentSrc`, a running `play` survives the change, and
 * `load` finds the file as the page left it. A video that the page started before this script loaded is left alone.
 */
import type { Link } from "../page/link";
import type { Natives } from "../page/natives";
import { wrapFunction } from "../page/wrap";

/** Without data after this time the browser gets its file back. */
const HOLD_MS = 4000;
/** An address without a fragment. A fragment may say where to begin (Media Fragments URI 1.0) and would be lost. */
const WHOLE_FILE = /^https?:[^#]*#?$/;

export interface HeldVideo {
  video: HTMLVideoElement;
  url: string;
  source: MediaSource;
  link: Link;
  natives: Natives;
  /** Ends the wait for data, because data has arrived. */
  settle(): void;
  /**
   * Gives the file back to the browser, at the same position and in the same state, unless the page took the video off
   * `source`.
   */
  restore(): void;
  /** Whether the video is still on `source`. */
  isHeld(): boolean;
}

/** A video that is or was held. Once `isOver`, the browser plays `url` itself for good. */
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
/** The file behind each address that this script made. */
const urls = new Map<string, string>();

/**
 * Holds a video; undefined for a video that must be left alone. With `isEarly`, no `play` came before `dressVideos`, so
 * none can be lost.
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
   * Handles an error before the first data, for example if the page's CSP (`media-src`) forbids such addresses. The
   * page does not hear of it.
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

/** Whether the video is still on its MediaSource. `currentSrc` does not say so: it names the last choice. */
function isOn(video: HTMLMediaElement, { address, isOver }: State): boolean {
  return !isOver && native.src.get?.call(video) === address && video.srcObject === null;
}

function setSource(video: HTMLMediaElement, address: string): void {
  native.src.set?.call(video, address);
}

/** Restores the `src` attribute as the page left it, for the `load` that follows. */
function giveBack(video: HTMLMediaElement, state: State): void {
  state.isOver = true;
  if (state.hadAttribute) setSource(video, state.url);
  else video.removeAttribute("src");
}

/** Changes what the video loads and keeps its position and state. */
function reload(video: HTMLVideoElement, change: () => void): void {
  const { currentTime, paused, playbackRate } = video;
  change();
  video.playbackRate = playbackRate;
  if (currentTime > 0) video.currentTime = currentTime;
  if (!paused) Promise.resolve(native.play.call(video)).catch(() => undefined);
}

/** Patches the video prototype so that the page sees its own files in held videos. */
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
