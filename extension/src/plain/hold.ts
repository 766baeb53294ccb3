/**
 * Hold: puts a `<video>` on a MediaSource in place of its file, keeps its state, and gives the file back. While a video
 * is held, the page reads the file's address from `src` and `currentSrc` and the file's duration, a running `play`
 * survives the change, `load` finds the file as the page left it, and a veil hides the second load.
 */
import type { Natives } from "../page/natives";
import { patchProperty } from "../page/wrap";
import { apply, firstOf, globalOf, matches, newTable, Notes, type Table } from "../shared/primordials";
import { pageMs } from "../shared/platform";
import { drop } from "../shared/late-platform";
import { MEDIA_EVENTS, type Heard } from "../shared/plain";
import {
  addressOf,
  endAddress,
  hasAttribute,
  hear as listen,
  hide,
  load,
  media,
  OwnMediaSource,
  pause,
  picture,
  removeAttribute,
  RESET,
  RESET_OF_VIDEO,
  setRate,
  setSource,
  setTime,
} from "./elements";
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
  /** Of the file, as the browser told it. */
  durationSec: number;
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
  before: Table<unknown>;
  switchedMs: number;
  /** Hears of each event, hidden or not. */
  hear(type: string): void;
  restore(): void;
  natives: Natives;
}

const states = new Notes<HTMLMediaElement, State>();
/** The file behind each address that this script made. */
const urls = newTable<string>();

/** The file that the browser plays in `video`; undefined for a video that must be left alone. */
export function fileOf(video: HTMLVideoElement): string | undefined {
  const url = media.currentSrc(video);
  const copied = urls[url];
  if (copied !== undefined && states.get(video)?.address !== url) setSource(video, copied);
  const isOther = media.crossOrigin(video) === "use-credentials" || media.srcObject(video) !== null;
  const isLeft = states.get(video)?.url === url || isOther;
  return matches(WHOLE_FILE, url) && !isLeft ? url : undefined;
}

/** Holds a video that plays the file `url`. `hear` gets the type of each event, hidden or not. */
export function hold(
  video: HTMLVideoElement,
  url: string,
  heard: Heard,
  natives: Natives,
  hear: (type: string) => void,
): HeldVideo {
  const source = new OwnMediaSource!();
  const isHeld = (): boolean => isOn(video, state);
  const restore = (): void => {
    if (isHeld()) {
      reload(video, state, () => {
        giveBack(video, state);
        load(video);
      });
    }
    settle();
    endAddress(state.address);
  };
  const state: State = {
    url,
    address: addressOf(source),
    hadAttribute: hasAttribute(video, "src"),
    isOver: false,
    heard,
    durationSec: media.duration(video),
    veil: new Veil(newTable(), { isPaused: true, isAtStart: true }),
    before: newTable(),
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
  firstOf(MEDIA_EVENTS, (type) => {
    const note = (event: Event): void => {
      if (states.get(video) !== state || !event.isTrusted) return;
      if (hides(video, type)) hide(event);
      else hear(type);
    };
    listen(video, type, note, { capture: true });
  });
  reload(video, state, () => setSource(video, state.address));
  const leave = (): void => {
    if (!isHeld() || !state.hadAttribute) return restore();
    const sec = media.currentTime(video);
    const rate = media.playbackRate(video);
    const isPaused = media.paused(video);
    state.isOver = true;
    removeAttribute(video, "src");
    load(video);
    natives.setTimeout(() => {
      if (hasAttribute(video, "src") || media.srcObject(video) !== null) return;
      setSource(video, url);
      setRate(video, rate);
      setTime(video, sec);
      if (!isPaused) goOn(video, natives);
    }, LEAVE_MS);
  };
  return { source, durationSec: state.durationSec, settle, restore, leave, isHeld };
}

/** Whether the video is still on its MediaSource. `currentSrc` does not say so: it names the last choice. */
function isOn(video: HTMLMediaElement, { address, isOver }: State): boolean {
  return !isOver && media.src(video) === address && media.srcObject(video) === null;
}

/** Whether the page has left its video on the file. */
function isOnFile(video: HTMLMediaElement, state: State): boolean {
  return isOn(video, state) || (state.isOver && media.currentSrc(video) === state.url);
}

/** Restores the `src` attribute as the page left it, for the `load` that follows. */
function giveBack(video: HTMLMediaElement, state: State): void {
  state.isOver = true;
  if (state.hadAttribute) setSource(video, state.url);
  else removeAttribute(video, "src");
}

function goOn(video: HTMLMediaElement, natives: Natives): void {
  void drop(apply(natives.play, video, []) as Promise<void>);
}

/** Changes what the video loads and keeps its position and state. */
function reload(video: HTMLVideoElement, state: State, change: () => void): void {
  const sec = media.currentTime(video);
  const rate = media.playbackRate(video);
  const isPaused = media.paused(video);
  const before = newTable<unknown>();
  firstOf(RESET, (name) => void (before[name] = veiled(name)(video, media[name](video))));
  firstOf(RESET_OF_VIDEO, (name) => void (before[name] = veiled(name)(video, picture[name](video))));
  state.before = before;
  const veil = new Veil(state.heard, { isPaused, isAtStart: sec === 0 });
  state.veil = veil;
  state.natives.setTimeout(() => veil.lift(), VEIL_MS);
  state.switchedMs = pageMs();
  change();
  setRate(video, rate);
  if (sec > 0) setTime(video, sec);
  if (!isPaused) goOn(video, state.natives);
  // Another load would begin a video with `autoplay` anew, although it was paused.
  else if ("play" in state.heard) pause(video);
}

/** The page seeks. Behind the veil the video may have nothing to seek in yet. */
function noteSeek(video: HTMLMediaElement, sec: number): void {
  const state = states.get(video);
  if (state?.veil.isUp !== true) return;
  state.veil.noteSeek(sec);
  state.before.seeking = true;
}

/** See PlainScript. */
export function hides(video: HTMLVideoElement, type: string): boolean {
  const state = states.get(video);
  if (state === undefined || !isOnFile(video, state)) return false;
  const { veil } = state;
  if (type === "error" && state.isOver) veil.lift();
  // A browser that has no metadata yet seeks later, but not to the start, where it is.
  if (type === "loadedmetadata" && veil.soughtSec !== null && veil.soughtSec <= 0) setTime(video, 0);
  // The page does not hear of an error of the MediaSource, for example if its CSP (`media-src`) forbids such addresses.
  const isOfHold = !state.isOver && (type === "error" || type === "durationchange");
  const isHidden = veil.hides(type) || isOfHold;
  if (type === "seeked" && !isHidden) state.before.seeking = false;
  if (!isHidden) return false;
  state.hear(type);
  if (isOfHold && type === "error") state.restore();
  return true;
}

/** See PlainScript. */
export function hasInterrupted(video: HTMLMediaElement, sinceMs: number): boolean {
  return (states.get(video)?.switchedMs ?? -Infinity) >= sinceMs && !media.paused(video);
}

/** Patches the video prototypes so that the page sees its own files in held videos. */
export function dressVideos(): void {
  const { prototype } = globalOf("HTMLMediaElement");
  firstOf(["src", "currentSrc"], (name) => dressGetter(prototype, name, (_, value) => urls[value as string] ?? value));
  firstOf(RESET, (name) => dressGetter(prototype, name, veiled(name)));
  firstOf(RESET_OF_VIDEO, (name) => dressGetter(globalOf("HTMLVideoElement").prototype, name, veiled(name)));
  dressGetter(prototype, "duration", (video, value) => stateOf(video)?.durationSec ?? value);
  dressGetter(prototype, "currentTime", (video, value) =>
    media.ended(video) ? (stateOf(video)?.durationSec ?? value) : value,
  );
  const noteAfter = (name: string, kind: "set" | "value"): void =>
    patchProperty(prototype, name, kind, (target, video, args) => {
      apply(target, video, args);
      noteSeek(video as HTMLMediaElement, +(args[0] as number));
    });
  noteAfter("currentTime", "set");
  noteAfter("fastSeek", "value");
  patchProperty(prototype, "load", "value", (target, receiver, args) => {
    const video = receiver as HTMLMediaElement;
    const state = states.get(video);
    if (state !== undefined && isOn(video, state)) giveBack(video, state);
    return apply(target, video, args) as unknown;
  });
}

function stateOf(video: HTMLMediaElement): State | undefined {
  const state = states.get(video);
  return state !== undefined && isOn(video, state) ? state : undefined;
}

function veiled(name: string): (video: HTMLMediaElement, value: unknown) => unknown {
  return (video, value) => {
    const state = states.get(video);
    return state?.veil.isUp === true && isOnFile(video, state) ? state.before[name] : value;
  };
}

function dressGetter(of: object, name: string, told: (video: HTMLMediaElement, value: unknown) => unknown): void {
  patchProperty(of, name, "get", (target, video, args) =>
    told(video as HTMLMediaElement, apply(target, video, args) as unknown),
  );
}
