/**
 * Elements: readers and methods of media elements and of what they play, as they were before a script of the page could
 * replace them.
 */
import { getterOf, gettersOf, globalOf, methodOf, options, setterOf, staticOf } from "../shared/primordials";

type Media = HTMLMediaElement;
type Listener = (event: Event) => void;

export const HAVE_METADATA = 1;
/** Properties that a second load would reset. */
export const RESET = ["readyState", "networkState", "seeking", "buffered", "seekable", "played"] as const;
export const RESET_OF_VIDEO = ["videoWidth", "videoHeight"] as const;

const resetOf = gettersOf("HTMLMediaElement", RESET);
const others = gettersOf("HTMLMediaElement", [
  "src",
  "currentSrc",
  "srcObject",
  "crossOrigin",
  "preload",
  "autoplay",
  "error",
  "duration",
  "currentTime",
  "paused",
  "playbackRate",
  "ended",
]);
/** Reads each property by its name. */
export const media = options({ ...others, ...resetOf });
export const picture = gettersOf("HTMLVideoElement", RESET_OF_VIDEO);
export const setSource = setterOf("HTMLMediaElement", "src");
export const setTime = setterOf("HTMLMediaElement", "currentTime");
export const setRate = setterOf("HTMLMediaElement", "playbackRate");
export const load = methodOf<Media, [], void>("HTMLMediaElement", "load");
export const pause = methodOf<Media, [], void>("HTMLMediaElement", "pause");

export const hasAttribute = methodOf<Element, [string], boolean>("Element", "hasAttribute");
export const removeAttribute = methodOf<Element, [string], void>("Element", "removeAttribute");

const addListener = methodOf<EventTarget, [string, Listener, AddEventListenerOptions], void>(
  "EventTarget",
  "addEventListener",
);
export const hear = (to: EventTarget, type: string, listener: Listener, given: AddEventListenerOptions = {}): void =>
  addListener(to, type, listener, options(given));
export const unhear = methodOf<EventTarget, [string, Listener], void>("EventTarget", "removeEventListener");
export const hide = methodOf<Event, [], void>("Event", "stopImmediatePropagation");

export const OwnMediaSource = globalOf("MediaSource") as typeof MediaSource | undefined;
export const isPlayable = staticOf("MediaSource", "isTypeSupported") as typeof MediaSource.isTypeSupported;
export const stateOf = getterOf("MediaSource", "readyState");
export const setDuration = setterOf("MediaSource", "duration");
export const addBuffer = methodOf<MediaSource, [string], SourceBuffer>("MediaSource", "addSourceBuffer");
export const endStream = methodOf<MediaSource, [], void>("MediaSource", "endOfStream");

export const isUpdating = getterOf("SourceBuffer", "updating");
export const appendTo = methodOf<SourceBuffer, [BufferSource], void>("SourceBuffer", "appendBuffer");
export const removeFrom = methodOf<SourceBuffer, [number, number], void>("SourceBuffer", "remove");

export const nameOf = getterOf("DOMException", "name");
export const Failure = globalOf("DOMException");

export const addressOf = staticOf("URL", "createObjectURL") as typeof URL.createObjectURL;
export const endAddress = staticOf("URL", "revokeObjectURL") as typeof URL.revokeObjectURL;
