/**
 * Veil: hides from the page that its video loads the same file again. The page has heard the events of the first load,
 * and the second one repeats them. Pure.
 */
import { FILE_EVENTS, LOAD_EVENTS, type Heard } from "../shared/plain";
import { firstOf, isOneOf, newTable, partsOf, startsWith } from "../shared/primordials";

const FILE = partsOf(FILE_EVENTS, " ");
const LOAD = partsOf(LOAD_EVENTS, " ");
/** The veil stays until these events have come again, if the page has heard them before. */
const STAGES = ["loadedmetadata", "loadeddata", "canplay", "playing"];

export class Veil {
  /** Events that the page has heard and that come again. */
  #again: Heard = newTable();
  #awaited: Heard = newTable();
  #soughtSec: number | null = null;

  /** `isAtStart` says that the second load need not seek to the position of the first. */
  constructor(heard: Heard, { isPaused, isAtStart }: { isPaused: boolean; isAtStart: boolean }) {
    const note = (to: Heard, types: readonly string[]): void =>
      void firstOf(types, (type) => {
        if (type in heard && !(isPaused && startsWith(type, "play"))) to[type] = true;
      });
    note(this.#again, FILE);
    note(this.#awaited, STAGES);
    if (!isAtStart) this.#awaited.seeked = true;
  }

  get isUp(): boolean {
    for (const _ in this.#awaited) return true;
    return false;
  }

  /** Where the page has sought behind the veil; null if it has not. */
  get soughtSec(): number | null {
    return this.isUp ? this.#soughtSec : null;
  }

  /** Takes an event of the video. True if the page must not hear it. */
  hides(type: string): boolean {
    const { isUp } = this;
    const isAgain = type in this.#again;
    delete this.#again[type];
    delete this.#awaited[type];
    if (type === "pause") delete this.#awaited.playing;
    if (isAgain || !isUp || !isOneOf(LOAD, type)) return isAgain;
    return !(this.#soughtSec !== null && startsWith(type, "seek"));
  }

  /** The page itself seeks. */
  noteSeek(sec: number): void {
    this.#soughtSec = sec;
    this.#awaited.seeked = true;
  }

  /** Ends the veil. What comes now, the page hears. */
  lift(): void {
    this.#awaited = newTable();
    this.#again = newTable();
  }
}
