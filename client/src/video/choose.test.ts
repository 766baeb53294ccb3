/** Which picture, sounds and subtitles of a video are taken. */
import { choose, type Wishes } from "./choose";
import type { Rendition, TrackKind } from "./presentation";

const load = (): Promise<never> => Promise.reject(new Error("not loaded"));
const rendition = (kind: TrackKind, label: string, more: Partial<Rendition> = {}): Rendition => ({
  ...{ kind, label, bandwidth: 0, isDefault: false, isForced: false, load },
  ...more,
});
const picture = rendition("video", "720p", { groups: { audio: "a" } });
const own = rendition("audio", "Original", { group: "a", language: "en" });
delete own.load;
const sounds = [
  rendition("audio", "Deutsch", { group: "a", language: "de-AT", isDefault: true }),
  own,
  rendition("audio", "Kommentar, lang", { group: "a", language: "de" }),
  rendition("audio", "Deutsch", { group: "of another quality", language: "de" }),
];
const soundsFor = (wishes: Wishes): string[] =>
  choose({ pictures: [picture], sounds, subtitles: [] }, wishes).sounds.map(({ label }) => label);

test.each([
  [undefined, ["Deutsch"]],
  ["en", ["Original"]],
  ["en,de", ["Original", "Deutsch"]],
  ["Kommentar, lang", ["Kommentar, lang"]],
  ["de,de-at", ["Deutsch"]],
  ["all", ["Deutsch", "Original", "Kommentar, lang"]],
])("sounds for the wish %s", (audio, expected) =>
  expect(soundsFor(audio === undefined ? {} : { audio })).toEqual(expected),
);

test("a wish that the video does not have is named", () => {
  expect(() => soundsFor({ audio: "en,fr" })).toThrow(/no sound "fr", allowed: de-AT, en, de/);
});

test("a manifest's set is one sound in several rates, and the best is taken", () => {
  const rates = ["1", "2", "3"].map((id) =>
    rendition("audio", id, { bandwidth: Number(id), set: id === "3" ? "other" : "same" }),
  );
  const all = { pictures: [rendition("video", "720p")], sounds: rates, subtitles: [] };
  expect(choose(all, { audio: "all" }).sounds.map(({ label }) => label)).toEqual(["3", "2"]);
});

test("subtitles in several languages", () => {
  const subtitles = ["de", "en", "fr"].map((language) => rendition("subtitles", language, { language }));
  const all = { pictures: [rendition("video", "720p")], sounds: [], subtitles };
  expect(choose(all, { subtitles: "fr, de" }).subtitles.map(({ label }) => label)).toEqual(["fr", "de"]);
});
