/**
 * Veil: hides from the page that its video loads the same file again. The page has heard the events of the first load,
 * and the second one repeats them. Pure.
 */
import { FILE_EVENTS, LOAD_EVENTS, type Heard } from "../shared/plain";
import { addTo, firstOf, isOneOf, newSet, partsOf, removeFrom, startsWith } from "../shared/primordials";
import { clear, countOf, isIn } from "../shared/late-primordials";

const FILE = partsOf(FILE_EVENTS, " ");
const LOAD = partsOf(LOAD_EVENTS, " ");
/** The veil stays until these events have come again, if the page has heard them before. */
const STAGES = ["loadedmetadata", "loadeddata", "canplay", "playing"];

export class Veil {
  /** Events that the page has heard and that come again. */
  readonly #again = newSet();
  readonly #awaited = newSet();
  #soughtSec: number | null = null;

  /** `isAtStart` says that the second load need not seek to the position of the first. */
  constructor(heard: Heard, { isPaused, isAtStart }: { isPaused: boolean; isAtStart: boolean }) {
    const note = (to: Set<string>, types: readonly string[]): void =>
      void firstOf(types, (type) => {
        if (isIn(heard, type) && !(isPaused && startsWith(type, "play"))) addTo(to, type);
      });
    note(this.#again, FILE);
    note(this.#awaited, STAGES);
    if (!isAtStart) addTo(this.#awaited, "seeked");
  }

  get isUp(): boolean {
    return countOf(this.#awaited) > 0;
  }

  /** Where the page has sought behind the veil; null if it has not. */
  get soughtSec(): number | null {
    return this.isUp ? this.#soughtSec : null;
  }

  /** Takes an event of the video. True if the page must not hear it. */
  hides(type: string): boolean {
    const { isUp } = this;
    const isAgain = removeFrom(this.#again, type);
    removeFrom(this.#awaited, type);
    if (type === "pause") removeFrom(this.#awaited, "playing");
    if (isAgain || !isUp || !isOneOf(LOAD, type)) return isAgain;
    return !(this.#soughtSec !== null && startsWith(type, "seek"));
  }

  /** The page itself seeks. */
  noteSeek(sec: number): void {
    this.#soughtSec = sec;
    addTo(this.#awaited, "seeked");
  }

  /** Ends the veil. What comes now, the page hears. */
  lift(): void {
    clear(this.#awaited);
    clear(this.#again);
  }
}
