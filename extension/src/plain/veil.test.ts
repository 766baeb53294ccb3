import type { Heard } from "../shared/plain";
import { Veil } from "./veil";

const LOADED = ["loadstart", "durationchange", "loadedmetadata", "loadeddata", "canplay"];

const heardOf = (types: readonly string[]): Heard => Object.fromEntries(types.map((type) => [type, true]));

/** The events of a load that the page hears. */
function shown(veil: Veil, types: readonly string[]): string[] {
  return types.filter((type) => !veil.hides(type));
}

test("veil: a second load is not heard, and the veil ends with it", () => {
  const veil = new Veil(heardOf([...LOADED, "play", "playing"]), { isPaused: false, isAtStart: false });
  const second = ["abort", "emptied", "play", "ratechange", "waiting", "timeupdate", ...LOADED, "seeking", "seeked"];
  expect([shown(veil, second), veil.isUp]).toEqual([[], true]);
  expect([veil.hides("playing"), veil.isUp]).toEqual([true, false]);
  const later = ["timeupdate", "waiting", "canplay", "playing", "seeking", "seeked", "ended"];
  expect(shown(veil, later)).toEqual(later);
});

test("veil: what the page has not heard yet, it hears now", () => {
  const veil = new Veil(heardOf(["loadstart", "durationchange", "loadedmetadata"]), {
    isPaused: true,
    isAtStart: true,
  });
  expect(shown(veil, ["emptied", ...LOADED])).toEqual(["loadeddata", "canplay"]);
  expect(veil.isUp).toBe(false);
});

test("veil: what the page does meanwhile, it hears", () => {
  const playing = new Veil(heardOf(["loadedmetadata", "play", "playing"]), { isPaused: false, isAtStart: true });
  expect([shown(playing, ["play", "pause", "loadedmetadata"]), playing.isUp]).toEqual([["pause"], false]);
  const paused = new Veil(heardOf([...LOADED, "play", "playing"]), { isPaused: true, isAtStart: false });
  paused.noteSeek(3);
  expect(shown(paused, ["play", ...LOADED, "seeking", "seeked", "playing"])).toEqual([
    "play",
    "seeking",
    "seeked",
    "playing",
  ]);
});

test("veil: a seek of the page keeps it up until the page has heard its end, and a lifted veil hides nothing", () => {
  const veil = new Veil(heardOf(["loadedmetadata"]), { isPaused: true, isAtStart: true });
  veil.noteSeek(0);
  expect([veil.hides("loadedmetadata"), veil.isUp, veil.soughtSec]).toEqual([true, true, 0]);
  expect([shown(veil, ["seeking", "seeked"]), veil.isUp]).toEqual([["seeking", "seeked"], false]);
  const stuck = new Veil(heardOf(LOADED), { isPaused: true, isAtStart: true });
  stuck.lift();
  expect([stuck.isUp, shown(stuck, ["emptied", ...LOADED])]).toEqual([false, ["emptied", ...LOADED]]);
});
