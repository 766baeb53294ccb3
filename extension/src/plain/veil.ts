/**
 * Veil: hides from the page that its video loads the same file again. The page has heard the events of the first load,
 * and the second one repeats them. Pure.
 */
import { FILE_EVENTS, LOAD_EVENTS, type Heard } from "../shared/plain";

/** The veil stays until these events have come again, if the page has heard them before. */
const STAGES = ["loadedmetadata", "loadeddata", "canplay", "playing"];

export class Veil {
  /** Events that the page has heard and that come again. */
  readonly #again: Set<string>;
  readonly #awaited: Set<string>;
  #soughtSec: number | null = null;

  /** `isAtStart` says that the second load need not seek to the position of the first. */
  constructor(heard: Heard, { isPaused, isAtStart }: { isPaused: boolean; isAtStart: boolean }) {
    const isAgain = (type: string): boolean => heard.has(type) && !(isPaused && /^play/.test(type));
    this.#again = new Set(FILE_EVENTS.filter(isAgain));
    this.#awaited = new Set([...STAGES.filter(isAgain), ...(isAtStart ? [] : ["seeked"])]);
  }

  get isUp(): boolean {
    return this.#awaited.size > 0;
  }

  /** Where the page has sought behind the veil; null if it has not. */
  get soughtSec(): number | null {
    return this.isUp ? this.#soughtSec : null;
  }

  /** Takes an event of the video. True if the page must not hear it. */
  hides(type: string): boolean {
    const { isUp } = this;
    const isAgain = this.#again.delete(type);
    this.#awaited.delete(type);
    if (type === "pause") this.#awaited.delete("playing");
    if (isAgain || !isUp || !LOAD_EVENTS.includes(type)) return isAgain;
    return !(this.#soughtSec !== null && /^seek/.test(type));
  }

  /** The page itself seeks. */
  noteSeek(sec: number): void {
    this.#soughtSec = sec;
    this.#awaited.add("seeked");
  }

  /** Ends the veil. What comes now, the page hears. */
  lift(): void {
    this.#awaited.clear();
    this.#again.clear();
  }
}
