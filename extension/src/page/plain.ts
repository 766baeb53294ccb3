/**
 * Plain: when a `<video>` begins to load a progressive MP4, the plain-video script is brought into the page and takes
 * the video over. Until then the browser loads the file itself.
 */
import { PLAIN_ANSWER_EVENT, PLAIN_NEED_EVENT, PLAIN_READY_EVENT } from "../shared/names";
import { MEDIA_EVENTS, type Heard, type PlainScript } from "../shared/plain";
import { mediaUrl } from "../shared/rules";
import {
  add,
  apply,
  firstOf,
  indexOf,
  isA,
  matches,
  newTable,
  Notes,
  options,
  slice,
  url as part,
} from "../shared/primordials";
import { bodyOf, cancelBody, eventOf, pageMs, responseOf, wholeBody } from "../shared/platform";
import type { PlainAnswer } from "../shared/runtime";
import type { Link } from "./link";
import { hear, hide, listen, natives, tell, VideoElement, videoOf } from "./natives";
import type { Permits } from "./permits";
import { wrapFunction } from "./wrap";

/** A page has few videos at once. */
const WAITING_MAX = 32;
/** The status of an answer to a range. */
const PARTIAL = 206;
const FILE = /\.(?:mp4|m4v|mov)$/i;
/** After `waiting` the browser fires these once more. */
const REPEATED = ["canplay", "canplaythrough", "playing"];

/** A video that began to load `url`, until the script and the answer have come. */
interface Waiting {
  video: HTMLVideoElement;
  heard: Heard;
  url: string;
  answer: string | undefined;
}

export function watchPlainVideos(link: Link, permits: Permits): void {
  let script: PlainScript | undefined;
  let waiting: Waiting[] = [];
  const heardOf = new Notes<HTMLVideoElement, Heard>();
  /** The address for which a video's takeover was begun. */
  const begunOf = new Notes<HTMLVideoElement, string>();

  hear<PlainScript>(PLAIN_READY_EVENT, (ready) => {
    script ??= ready;
    takeAnswered();
  });
  hear<string>(PLAIN_ANSWER_EVENT, (told) => {
    const space = indexOf(told, " ");
    firstOf(waiting, (each) => {
      if (each.url === slice(told, space + 1)) each.answer = slice(told, 0, space);
    });
    takeAnswered();
  });

  function takeAnswered(): void {
    const left: Waiting[] = [];
    firstOf(waiting, (each) => {
      const { answer } = each;
      if (answer === undefined || (answer !== "no" && script === undefined)) add(left, each);
      else if (answer !== "no") void take(each);
    });
    waiting = left;
  }

  async function take({ video, heard, url, answer }: Waiting): Promise<void> {
    const redirect = (answer as PlainAnswer) === "here" ? "error" : "follow";
    if ((await isPermitted(url, redirect, permits)) && videoOf.url(video) === url)
      script?.take(video, heard, link, natives);
  }

  /** Comes before any script of the page. */
  function note(event: Event): void {
    const { target: video, type } = eventOf(event);
    if (!isA(VideoElement, video) || !event.isTrusted) return;
    if (script?.hides(video, type) === true) return hide(event);
    if (type === "emptied") heardOf.delete(video);
    const heard = heardOf.get(video) ?? newTable<true>();
    heardOf.set(video, heard);
    heard[type] = true;
    if (type === "waiting") firstOf(REPEATED, (each) => void delete heard[each]);
    if (type === "play") delete heard.playing;
    // After a `<source>` that fails the browser loads the next one without another `loadstart`.
    const isNextSource = type === "loadedmetadata" && begunOf.get(video) !== videoOf.url(video);
    if (type === "loadstart" || isNextSource) begin(video, heard);
  }

  function begin(video: HTMLVideoElement, heard: Heard): void {
    const address = videoOf.url(video);
    begunOf.set(video, address);
    const url = link.isNative ? null : mediaUrl(address);
    if (url === null || !matches(FILE, part.pathname(url))) return;
    // With `none` the browser loads nothing before the video plays.
    if (videoOf.preload(video) !== "none") {
      link.prepare();
      link.warm();
    }
    if (waiting.length >= WAITING_MAX) return;
    add(waiting, { video, heard, url: address, answer: undefined });
    tell(PLAIN_NEED_EVENT, address);
  }

  firstOf(MEDIA_EVENTS, (type) => listen<Event>(window, type, note));
  keepPlaying((video, sinceMs) => script?.hasInterrupted(video, sinceMs) === true);
}

/** `playing`, or `other` if it fails. */
async function goOn(playing: Promise<void>, other: () => unknown): Promise<unknown> {
  try {
    return await playing;
  } catch {
    return await other();
  }
}

/** A call of `play` that a takeover interrupts goes on. */
function keepPlaying(hasInterrupted: PlainScript["hasInterrupted"]): void {
  // eslint-disable-next-line tributary/primordials -- This runs before the page.
  HTMLMediaElement.prototype.play = wrapFunction(natives.play, function play(target, receiver, args): unknown {
    const sinceMs = pageMs();
    const playing = apply(target, receiver, args) as Promise<void> | undefined;
    return (
      playing &&
      goOn(playing, (): unknown => {
        return hasInterrupted(receiver as HTMLMediaElement, sinceMs) ? play(target, receiver, args) : playing;
      })
    );
  });
}

/**
 * Whether the page may read `url`. If no request of the page has told that yet, the browser asks for one byte. It lists
 * a request (`Permits`) after the body has ended, so the body is read and not cancelled. A site that does not answer
 * with a part has no ranges, and the browser plays its file.
 */
async function isPermitted(url: string, redirect: RequestRedirect, permits: Permits): Promise<boolean> {
  if (permits.allows(url)) return true;
  try {
    const headers = options({ Range: "bytes=0-0" });
    const response = await natives.fetch(url, options({ headers, redirect }));
    const answer = responseOf(response);
    permits.note(url, answer.url, answer);
    if (answer.status !== PARTIAL) {
      void cancelBody(bodyOf(response)!);
      return false;
    }
    await wholeBody(response);
  } catch {
    // The browser says why.
  }
  return await permits.willAllow(url);
}
