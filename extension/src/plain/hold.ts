/**
 * Hold: puts a `<video>` on a MediaSource in place of its file, keeps its state, and gives the file back. While a video
 * is held, the page reads the file's address from `src` and `currentSrc` and the file's duration, a running `play`
 * survives the change, `load` finds the file as the page left it, and a veil hides the second load.
 */
import type { Natives } from "../page/natives";
import { wrapFunction } from "../page/wrap";
import { apply, getterOf, newTable, Notes } from "../shared/primordials";
import { MEDIA_EVENTS, type Heard } from "../shared/plain";
import { Veil } from "./veil";

/** Without data after this time the browser gets its file back. */
const HOLD_MS = 4000;
/** If an event does not come, the page sees its video as it is after this time. */
const VEIL_MS = 10_000;
const LEAVE_MS = 500;
/** An address without a fragment. A fragment may say where to begin (Media Fragments URI 1.0) and would be lost. */
const WHOLE_FILE = /^https?:[^#]*#?$/;

export interface HeldVideo {
  source: MediaSource;
  /** Ends the wait for data, because data has arrived. */
  settle(): void;
  /**
   * Gives the file back to the browser, at the same position and in the same state, unless the page took the video off
   * `source`.
   */
  restore(): void;
  /**
   * Does so without a request for the file before LEAVE_MS: with one, Firefox would not keep a page that is being left.
   * The timers of a page that is kept wait until it is shown again.
   */
  leave(): void;
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
  heard: Heard;
  durationSec: number;
  veil: Veil;
  /** What the page reads while the veil is up. */
  before: Map<string, unknown>;
  switchedMs: number;
  /** Hears of each event, hidden or not. */
  hear(type: string): void;
  restore(): void;
  natives: Natives;
}

const prototype = HTMLMediaElement.prototype;
const own = (name: string, of: object = prototype): PropertyDescriptor =>
  Object.getOwnPropertyDescriptor(of, name) ?? {};
const native = {
  src: own("src"),
  currentSrc: own("currentSrc"),
  duration: own("duration"),
  currentTime: own("currentTime"),
  buffered: own("buffered"),
  pause: prototype.pause,
  load: prototype.load,
};
/** Properties that a second load would reset. */
const RESET = ["readyState", "networkState", "seeking", "buffered", "seekable", "played"];
const RESET_OF_VIDEO = ["videoWidth", "videoHeight"];

const isEnded = getterOf("HTMLMediaElement", "ended");

const states = new Notes<HTMLMediaElement, State>();
/** The file behind each address that this script made. */
const urls = newTable<string>();

export const bufferedOf = (video: HTMLVideoElement): TimeRanges => apply(native.buffered.get!, video, []) as TimeRanges;

/** The file that the browser plays in `video`; undefined for a video that must be left alone. */
export function fileOf(video: HTMLVideoElement): string | undefined {
  const url = String(apply(native.currentSrc.get!, video, []) ?? "");
  const copied = urls[url];
  if (copied !== undefined && states.get(video)?.address !== url) setSource(video, copied);
  const isLeft = states.get(video)?.url === url || video.crossOrigin === "use-credentials" || video.srcObject !== null;
  return WHOLE_FILE.test(url) && !isLeft ? url : undefined;
}

/** Holds a video that plays the file `url`. `hear` gets the type of each event, hidden or not. */
export function hold(
  video: HTMLVideoElement,
  url: string,
  heard: Heard,
  natives: Natives,
  hear: (type: string) => void,
): HeldVideo {
  const source = new MediaSource();
  const isHeld = (): boolean => isOn(video, state);
  const restore = (): void => {
    if (isHeld()) {
      reload(video, state, () => {
        giveBack(video, state);
        apply(native.load, video, []);
      });
    }
    settle();
    URL.revokeObjectURL(state.address);
  };
  const state: State = {
    url,
    address: URL.createObjectURL(source),
    hadAttribute: video.hasAttribute("src"),
    isOver: false,
    heard,
    durationSec: video.duration,
    veil: new Veil(newTable(), { isPaused: true, isAtStart: true }),
    before: new Map(),
    switchedMs: 0,
    hear,
    restore,
    natives,
  };
  const timer = natives.setTimeout(restore, HOLD_MS);
  const settle = (): void => natives.clearTimeout(timer);
  states.set(video, state);
  urls[state.address] = url;
  // A video outside the document is not heard from the window.
  for (const type of MEDIA_EVENTS) {
    video.addEventListener(
      type,
      (event) => {
        if (states.get(video) !== state || !event.isTrusted) return;
        if (hides(video, type)) event.stopImmediatePropagation();
        else hear(type);
      },
      { capture: true },
    );
  }
  reload(video, state, () => setSource(video, state.address));
  const leave = (): void => {
    if (!isHeld() || !state.hadAttribute) return restore();
    const { currentTime, paused, playbackRate } = video;
    state.isOver = true;
    video.removeAttribute("src");
    apply(native.load, video, []);
    natives.setTimeout(() => {
      if (video.hasAttribute("src") || video.srcObject !== null) return;
      setSource(video, url);
      Object.assign(video, { playbackRate, currentTime });
      if (!paused) Promise.resolve(apply(natives.play, video, [])).catch(() => undefined);
    }, LEAVE_MS);
  };
  return { source, settle, restore, leave, isHeld };
}

/** Whether the video is still on its MediaSource. `currentSrc` does not say so: it names the last choice. */
function isOn(video: HTMLMediaElement, { address, isOver }: State): boolean {
  return !isOver && apply(native.src.get!, video, []) === address && video.srcObject === null;
}

/** Whether the page has left its video on the file. */
function isOnFile(video: HTMLMediaElement, state: State): boolean {
  return isOn(video, state) || (state.isOver && apply(native.currentSrc.get!, video, []) === state.url);
}

function setSource(video: HTMLMediaElement, address: string): void {
  apply(native.src.set!, video, [address]);
}

/** Restores the `src` attribute as the page left it, for the `load` that follows. */
function giveBack(video: HTMLMediaElement, state: State): void {
  state.isOver = true;
  if (state.hadAttribute) setSource(video, state.url);
  else video.removeAttribute("src");
}

/** Changes what the video loads and keeps its position and state. */
function reload(video: HTMLVideoElement, state: State, change: () => void): void {
  const { currentTime, paused, playbackRate } = video;
  const of = video as unknown as Record<string, unknown>;
  state.before = new Map([...RESET, ...RESET_OF_VIDEO].map((name) => [name, of[name]]));
  const veil = new Veil(state.heard, { isPaused: paused, isAtStart: currentTime === 0 });
  state.veil = veil;
  state.natives.setTimeout(() => veil.lift(), VEIL_MS);
  state.switchedMs = performance.now();
  change();
  video.playbackRate = playbackRate;
  if (currentTime > 0) seek(video, currentTime);
  if (!paused) Promise.resolve(apply(state.natives.play, video, [])).catch(() => undefined);
  // Another load would begin a video with `autoplay` anew, although it was paused.
  else if ("play" in state.heard) apply(native.pause, video, []);
}

function seek(video: HTMLMediaElement, sec: number): void {
  apply(native.currentTime.set!, video, [sec]);
}

/** The page seeks. Behind the veil the video may have nothing to seek in yet. */
function noteSeek(video: HTMLMediaElement, sec: number): void {
  const state = states.get(video);
  if (state?.veil.isUp !== true) return;
  state.veil.noteSeek(sec);
  state.before.set("seeking", true);
}

/** See PlainScript. */
export function hides(video: HTMLVideoElement, type: string): boolean {
  const state = states.get(video);
  if (state === undefined || !isOnFile(video, state)) return false;
  const { veil } = state;
  if (type === "error" && state.isOver) veil.lift();
  // A browser that has no metadata yet seeks later, but not to the start, where it is.
  if (type === "loadedmetadata" && veil.soughtSec !== null && veil.soughtSec <= 0) seek(video, 0);
  // The page does not hear of an error of the MediaSource, for example if its CSP (`media-src`) forbids such addresses.
  const isOfHold = !state.isOver && (type === "error" || type === "durationchange");
  const isHidden = veil.hides(type) || isOfHold;
  if (type === "seeked" && !isHidden) state.before.set("seeking", false);
  if (!isHidden) return false;
  state.hear(type);
  if (isOfHold && type === "error") state.restore();
  return true;
}

/** See PlainScript. */
export function hasInterrupted(video: HTMLMediaElement, sinceMs: number): boolean {
  return (states.get(video)?.switchedMs ?? -Infinity) >= sinceMs && !video.paused;
}

/** Patches the video prototypes so that the page sees its own files in held videos. */
export function dressVideos(): void {
  for (const name of ["src", "currentSrc"] as const)
    dressGetter(prototype, name, (_video, value) => urls[value as string] ?? value);
  for (const name of RESET) dressGetter(prototype, name, veiled(name));
  for (const name of RESET_OF_VIDEO) dressGetter(HTMLVideoElement.prototype, name, veiled(name));
  dressGetter(prototype, "duration", (video, value) => stateOf(video)?.durationSec ?? value);
  dressGetter(prototype, "currentTime", (video, value) =>
    isEnded(video) ? (stateOf(video)?.durationSec ?? value) : value,
  );
  dressSetter("currentTime", noteSeek);
  const { fastSeek } = prototype as Partial<HTMLMediaElement>;
  if (fastSeek !== undefined)
    prototype.fastSeek = wrapFunction(fastSeek, (target, video, args) => {
      apply(target, video, args as [number]);
      noteSeek(video as HTMLMediaElement, +(args[0] as number));
    });
  prototype.load = wrapFunction(native.load, (target, receiver, args) => {
    const video = receiver as HTMLMediaElement;
    const state = states.get(video);
    if (state !== undefined && isOn(video, state)) giveBack(video, state);
    return apply(target, video, args);
  });
}

function stateOf(video: HTMLMediaElement): State | undefined {
  const state = states.get(video);
  return state !== undefined && isOn(video, state) ? state : undefined;
}

function veiled(name: string): (video: HTMLMediaElement, value: unknown) => unknown {
  return (video, value) => {
    const state = states.get(video);
    return state?.veil.isUp === true && isOnFile(video, state) ? state.before.get(name) : value;
  };
}

function dressGetter(of: object, name: string, told: (video: HTMLMediaElement, value: unknown) => unknown): void {
  const descriptor = own(name, of);
  if (descriptor.get === undefined) return;
  const get = wrapFunction(descriptor.get, (target, video) =>
    told(video as HTMLMediaElement, apply(target, video, [])),
  );
  Object.defineProperty(of, name, { ...descriptor, get });
}

function dressSetter(name: string, note: (video: HTMLMediaElement, value: number) => void): void {
  const descriptor = own(name);
  if (descriptor.set === undefined) return;
  const set = wrapFunction(descriptor.set, (target, video, args) => {
    apply(target, video, args as [unknown]);
    note(video as HTMLMediaElement, +(args[0] as number));
  });
  Object.defineProperty(prototype, name, { ...descriptor, set });
}
