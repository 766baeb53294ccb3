/**
 * Plain: when a `<video>` begins to load a progressive MP4, the plain-video script is brought into the page and takes
 * the video over. Until then the browser loads the file itself.
 */
import { PLAIN_NEED_EVENT, PLAIN_READY_EVENT } from "../shared/names";
import { MEDIA_EVENTS, type Heard, type PlainScript } from "../shared/plain";
import { mediaUrl } from "../shared/rules";
import type { Link } from "./link";
import { natives } from "./natives";
import type { Permits } from "./permits";
import { wrapFunction } from "./wrap";

const FILE = /\.(?:mp4|m4v|mov)$/i;

export function watchPlainVideos(link: Link, permits: Permits): void {
  let script: PlainScript | undefined;
  const waiting = new Map<HTMLVideoElement, Heard>();
  const heardOf = new WeakMap<HTMLVideoElement, Heard>();
  /** The address for which a video's takeover was begun. */
  const begunOf = new WeakMap<HTMLVideoElement, string>();

  document.addEventListener(PLAIN_READY_EVENT, (event) => {
    script ??= (event as CustomEvent<PlainScript>).detail;
    for (const [video, heard] of waiting) script.take(video, heard, link, natives);
    waiting.clear();
  });

  async function prepare(video: HTMLVideoElement, heard: Heard): Promise<void> {
    const url = video.currentSrc;
    if (!(await isPermitted(url, permits)) || video.currentSrc !== url) return;
    if (script !== undefined) return script.take(video, heard, link, natives);
    waiting.set(video, heard);
    document.dispatchEvent(new CustomEvent(PLAIN_NEED_EVENT));
  }

  /** Hears each event before any script of the page does. */
  function hear(event: Event): void {
    const { target: video, type } = event;
    if (!(video instanceof HTMLVideoElement) || !event.isTrusted) return;
    if (script?.hides(video, type) === true) return event.stopImmediatePropagation();
    if (type === "emptied") heardOf.delete(video);
    const heard = heardOf.get(video) ?? new Set();
    heardOf.set(video, heard.add(type));
    // After these the browser fires the others once more.
    if (type === "waiting") for (const each of ["canplay", "canplaythrough", "playing"]) heard.delete(each);
    if (type === "play") heard.delete("playing");
    // After a `<source>` that fails the browser loads the next one without another `loadstart`.
    const isNextSource = type === "loadedmetadata" && begunOf.get(video) !== video.currentSrc;
    if (type === "loadstart" || isNextSource) begin(video, heard);
  }

  function begin(video: HTMLVideoElement, heard: Heard): void {
    begunOf.set(video, video.currentSrc);
    if (link.isNative || !FILE.test(mediaUrl(video.currentSrc)?.pathname ?? "")) return;
    // With `none` the browser loads nothing before the video plays.
    if (video.preload !== "none") link.warm();
    void prepare(video, heard);
  }

  for (const type of MEDIA_EVENTS) window.addEventListener(type, hear, true);
  keepPlaying((video, sinceMs) => script?.hasInterrupted(video, sinceMs) === true);
}

/** A call of `play` that a takeover interrupts goes on. */
function keepPlaying(hasInterrupted: PlainScript["hasInterrupted"]): void {
  const { prototype } = HTMLMediaElement;
  prototype.play = wrapFunction(prototype.play, function play(target, receiver, args): unknown {
    const sinceMs = performance.now();
    const playing = natives.apply(target, receiver, args) as Promise<void> | undefined;
    return playing?.catch((error: unknown) =>
      hasInterrupted(receiver as HTMLMediaElement, sinceMs) ? play(target, receiver, args) : Promise.reject(error),
    );
  });
}

/**
 * Whether the page may read `url`. If no request of the page has told that yet, the browser asks for one byte. It lists
 * a request (`Permits`) after the body has ended, so the body is read and not cancelled. A site that sends more than
 * that one byte has no ranges, and the browser plays its file.
 */
async function isPermitted(url: string, permits: Permits): Promise<boolean> {
  if (permits.allows(url)) return true;
  try {
    const response = await natives.fetch(url, { headers: { Range: "bytes=0-0" } });
    permits.note(url, natives.responseUrl(response), response);
    if (!(await isShort(response))) return false;
  } catch {
    // The browser says why.
  }
  return permits.willAllow(url);
}

/** Whether the body has one byte at most. */
async function isShort({ body }: Response): Promise<boolean> {
  const reader = body?.getReader();
  for (let bytes = 0; bytes <= 1;) {
    const piece = await reader?.read();
    if (piece?.value === undefined) return true;
    bytes += piece.value.length;
  }
  void reader?.cancel();
  return false;
}
