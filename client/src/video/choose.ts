/** Chooses one picture, the sounds and the subtitles among those of a video. No I/O. */
import { VideoError, type Presentation, type Rendition } from "./presentation";

export interface Choice {
  picture: Rendition;
  /** None if the picture's segments contain the only sound, or if the video is silent. */
  sounds: Rendition[];
  subtitles: Rendition[];
}

export interface Wishes {
  /** `best` (default), `worst`, a height such as `720p`, or bits a second such as `2000000`, `2000k` and `2M`. */
  quality?: string;
  /** Languages such as `de` or names of sounds with commas between them, or `all`. Default: the site's choice. */
  audio?: string;
  /** Languages or names of subtitles with commas between them, or `all`. Default: none. */
  subtitles?: string;
}

export const QUALITY_ALLOWED = "best, worst, a height such as 720p, or bits a second such as 2000000, 2000k or 2M";

type Quality = { kind: "best" | "worst" } | { kind: "height" | "bandwidth"; max: number };

export const isQuality = (text: string): boolean => parseQuality(text) !== undefined;

function parseQuality(text: string): Quality | undefined {
  if (text === "best" || text === "worst") return { kind: text };
  const height = /^(\d{1,5})p$/i.exec(text);
  if (height) return { kind: "height", max: Number(height[1]) };
  const bandwidth = /^(\d{1,12}(?:\.\d+)?)([kM]?)$/.exec(text);
  if (!bandwidth) return undefined;
  return { kind: "bandwidth", max: Number(bandwidth[1]) * { "": 1, k: 1e3, M: 1e6 }[bandwidth[2] as "" | "k" | "M"] };
}

export function choose({ pictures, sounds, subtitles }: Presentation, wishes: Wishes): Choice {
  const picture = choosePicture(pictures, wishes.quality ?? "best");
  const ofGroup = (renditions: Rendition[], group: string | undefined): Rendition[] =>
    picture.groups === undefined ? renditions : renditions.filter((rendition) => rendition.group === group);
  const texts = ofGroup(subtitles, picture.groups?.subtitles);
  return {
    picture,
    sounds: chooseSounds(ofGroup(sounds, picture.groups?.audio), wishes.audio),
    subtitles: wishes.subtitles === undefined ? [] : chooseTexts(texts, wishes.subtitles),
  };
}

/** If every picture is larger than the wish, the smallest is taken. */
function choosePicture(pictures: Rendition[], text: string): Rendition {
  const quality = parseQuality(text);
  if (!quality)
    throw new VideoError(`The quality is not valid: got ${JSON.stringify(text)}, allowed: ${QUALITY_ALLOWED}.`);
  const sorted = [...pictures].sort((a, b) => linesOf(b) - linesOf(a) || b.bandwidth - a.bandwidth);
  const fits = ({ ...picture }: Rendition): boolean => {
    if (quality.kind === "height") return linesOf(picture) <= quality.max;
    return quality.kind === "bandwidth" ? picture.bandwidth <= quality.max : quality.kind === "best";
  };
  const found = sorted.find(fits) ?? sorted.at(-1);
  if (!found) throw new VideoError("The playlist names no picture.");
  return found;
}

/** The `p` of 720p: the shorter side, because a video may be upright. */
function linesOf({ width = 0, height = 0 }: Rendition): number {
  return width > 0 ? Math.min(width, height) : height;
}

/** The best rate of each sound. The site's choice comes first, because players begin with the first. */
function chooseSounds(sounds: Rendition[], wish: string | undefined): Rendition[] {
  const sorted = [...sounds].sort((a, b) => Number(b.isDefault) - Number(a.isDefault) || b.bandwidth - a.bandwidth);
  if (wish === undefined) return sorted.slice(0, 1);
  if (wish === "all")
    return sorted.filter((sound, index) => sorted.findIndex((other) => isSameSound(sound, other)) === index);
  const byRate = [...sounds].sort((a, b) => b.bandwidth - a.bandwidth);
  const found = partsOf(wish, sounds).map((part) => {
    const sound = byRate.find((each) => isMeant(each, part));
    if (!sound) throw absent("sound", part, sounds);
    return sound;
  });
  return [...new Set(found)];
}

function isSameSound(a: Rendition, b: Rendition): boolean {
  return a.set === undefined ? a.label === b.label : a.set === b.set;
}

function chooseTexts(texts: Rendition[], wish: string): Rendition[] {
  const withText = texts.filter(({ load }) => load !== undefined);
  if (wish === "all") return withText;
  const found = partsOf(wish, withText).flatMap((part) => {
    const those = withText.filter((text) => isMeant(text, part));
    if (those.length === 0) throw absent("subtitles", part, withText);
    return those;
  });
  return [...new Set(found)];
}

/** A name may contain a comma itself. */
function partsOf(wish: string, renditions: readonly Rendition[]): string[] {
  return renditions.some((each) => isMeant(each, wish)) ? [wish] : wish.split(",").map((part) => part.trim());
}

/** `de` means `de-AT` too (RFC 4647 §3.3.1). */
function isMeant({ language, label }: Rendition, wish: string): boolean {
  const [had, wanted] = [language?.toLowerCase() ?? "", wish.toLowerCase()];
  return had === wanted || had.startsWith(`${wanted}-`) || label.toLowerCase() === wanted;
}

function absent(what: string, wish: string, there: Rendition[]): VideoError {
  const names = [...new Set(there.map(({ language, label }) => language ?? label))];
  const allowed = names.length > 0 ? names.join(", ") : "nothing, because the video has none apart";
  return new VideoError(`The video has no ${what} ${JSON.stringify(wish)}, allowed: ${allowed}.`);
}
