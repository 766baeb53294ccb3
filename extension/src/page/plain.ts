/**
 * Plain: a `<video>` of the document that begins to load a progressive MP4 waits on an empty MediaSource, while the
 * plain-video script is brought in to feed it. Nothing for so long, or anything that the script can't do: the browser gets its file.
 */
import { PLAIN_NEED_EVENT, PLAIN_READY_EVENT } from "../shared/names";
import type { HeldVideo, PlainPlayer } from "../shared/plain";
import { mediaUrl } from "../shared/rules";
import type { Link } from "./link";
import { nativeClearTimeout, nativeFetch, nativeSetTimeout, wrapFunction } from "./natives";

const HOLD_MS = 4000;
const FILE = /\.(?:mp4|m4v|mov)$/i;

/** What a video plays by our hand, or played: `url` is given back to the browser for good once `isOver`. */
interface Held {
  url: string;
  address: string;
  isOver: boolean;
}

export function watchPlainVideos(link: Link): void {
  const prototype = HTMLMediaElement.prototype;
  const source = Object.getOwnPropertyDescriptor(prototype, "src");
  const current = Object.getOwnPropertyDescriptor(prototype, "currentSrc");
  if (typeof MediaSource !== "function" || source?.get === undefined || source.set === undefined || current?.get === undefined) return;
  const [setSource, readCurrent] = [source.set, current.get];
  const helds = new WeakMap<HTMLMediaElement, Held>();
  let player: PlainPlayer | undefined;
  const waiting: HeldVideo[] = [];
  const currentOf = (video: HTMLMediaElement): string => String(Reflect.apply(readCurrent, video, []));

  document.addEventListener(PLAIN_READY_EVENT, (event) => {
    player ??= (event as CustomEvent<PlainPlayer>).detail;
    waiting.splice(0).forEach(player);
  });

  document.addEventListener("loadstart", ({ target }) => {
    if (!(target instanceof HTMLVideoElement) || link.isNative || target.crossOrigin === "use-credentials") return;
    const url = currentOf(target);
    if (helds.get(target)?.url === url || mediaUrl(url) === null || !FILE.test(new URL(url).pathname)) return;
    link.warm();
    const held = hold(target, url);
    if (player !== undefined) return player(held);
    if (waiting.push(held) === 1) document.dispatchEvent(new CustomEvent(PLAIN_NEED_EVENT));
  }, true);

  function hold(video: HTMLVideoElement, url: string): HeldVideo {
    const hadAttribute = video.hasAttribute("src");
    const media = new MediaSource();
    const state: Held = { url, address: URL.createObjectURL(media), isOver: false };
    helds.set(video, state);
    const isHeld = (): boolean => !state.isOver && currentOf(video) === state.address;
    const restore = (): void => {
      if (isHeld()) {
        state.isOver = true;
        reload(video, () => {
          if (hadAttribute) return void Reflect.apply(setSource, video, [url]);
          video.removeAttribute("src");
          video.load();
        });
      }
      nativeClearTimeout(timer);
      URL.revokeObjectURL(state.address);
    };
    const timer = nativeSetTimeout(restore, HOLD_MS);
    reload(video, () => void Reflect.apply(setSource, video, [state.address]));
    return { video, url, source: media, link, nativeFetch, settle: () => nativeClearTimeout(timer), restore, isHeld };
  }

  /** The page is told its own address. */
  const told = (native: (this: unknown) => unknown): typeof native => wrapFunction(native, (target, video) => {
    const held = helds.get(video as HTMLMediaElement);
    const value = Reflect.apply(target, video, []);
    return held !== undefined && value === held.address ? held.url : value;
  });
  Object.defineProperty(prototype, "src", { ...source, get: told(source.get) });
  Object.defineProperty(prototype, "currentSrc", { ...current, get: told(current.get) });

  /** A `play` under way outlives our change of the source. */
  const play = Object.getOwnPropertyDescriptor(prototype, "play");
  if (play === undefined) return;
  const value = wrapFunction(play.value as () => Promise<void>, (target, video, args) => {
    const before = helds.get(video as HTMLMediaElement);
    const playing = Reflect.apply(target, video, args) as Promise<void> | undefined;
    return playing?.catch((error: unknown) => {
      const element = video as HTMLMediaElement;
      return helds.get(element) === before && before?.isOver !== true || element.paused ? Promise.reject(error) : (Reflect.apply(target, element, []) as Promise<void>);
    });
  });
  Object.defineProperty(prototype, "play", { ...play, value });
}

/** Loads something else in the same place and state. */
function reload(video: HTMLVideoElement, change: () => void): void {
  const { currentTime, paused, playbackRate } = video;
  change();
  video.playbackRate = playbackRate;
  if (currentTime > 0) video.currentTime = currentTime;
  if (!paused) video.play().catch(() => undefined);
}
