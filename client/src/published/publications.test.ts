/** What a client believes of a publication, with an Origo that the test plays. */
import { generateKeyPairSync, type KeyObject } from "node:crypto";
import { publicKeyOf, sign } from "@tributary/contract/signed";
import type { Platform } from "../platform";
import { SETTINGS_DEFAULT } from "../settings";
import { Publications } from "./publications";
import { RevisionsInMemory, type SeenRevisions } from "./revisions";

const DAY_MS = 86_400_000;
const CLIENT = "0b8f5a0e-6a1e-4c4e-8b0f-0123456789ab";
const [own, other] = [generateKeyPairSync("ed25519").privateKey, generateKeyPairSync("ed25519").privateKey];
let [key, otherKey] = ["", ""];
beforeAll(async () => ([key, otherKey] = await Promise.all([publicKeyOf(own), publicKeyOf(other)])));

/** The address of the one file tells the revision. */
const objectOf = (revision: number): string => `${String(revision).padStart(64, "0")}-${revision}`;

async function signed(revision: number, by: KeyObject = own, of = { key, name: "film" }): Promise<string> {
  const files = ["film.mp4", "film.m3u8"].map((path) => ({ path, type: "video/mp4", object: objectOf(revision) }));
  return sign({ kind: "manifest", ...of, revision, files }, by);
}

function build(seen: SeenRevisions = new RevisionsInMemory()) {
  const origo = { manifest: "", isAway: false, asked: 0 };
  const clock = { nowMs: 0, epochMs: Date.now() };
  const proxies = ["a", "b"].map((id) => ({ id, name: id, url: `http://${id}` }));
  const platform = {
    now: () => clock.nowMs,
    epochMs: () => clock.epochMs,
    fetch: () => {
      origo.asked++;
      if (origo.isAway) return Promise.reject(new TypeError("fetch failed"));
      return Promise.resolve(Response.json({ manifest: origo.manifest, holders: 1, proxies }));
    },
  } as unknown as Platform;
  const publications = new Publications("http://origo", platform, SETTINGS_DEFAULT, CLIENT, seen);
  /** The revision that plays and its proxies, or why nothing plays. */
  const play = async (path = "film.mp4"): Promise<string> => {
    const file = await publications.find({ key, name: "film", path }).catch((error: Error) => error.message);
    if (typeof file !== "object") return file ?? "not found";
    const picked = await file.holders.pick(4);
    const from = "rejection" in picked ? picked.rejection.message : picked.proxies.map(({ id }) => id).join();
    return `${file.object.bytes} from ${from}`;
  };
  return { origo, clock, play };
}

test("a signed manifest plays from its holders", async () => {
  const { origo, play } = build();
  origo.manifest = await signed(3);
  expect(await play()).toBe("3 from a");
});

test.each<[string, () => Promise<string>, () => string]>([
  ["no signature", () => Promise.resolve(""), () => `not one of the key ${key}`],
  ["a changed byte", async () => (await signed(3)).replace(/.{4}$/, "AAAA"), () => `not one of the key ${key}`],
  ["another key's signature", () => signed(3, other), () => `the signature is not one of the key ${key}`],
  [
    "its own key, which is not the address's",
    () => signed(3, other, { key: otherKey, name: "film" }),
    () => `of the key ${key}`,
  ],
  ["another name", () => signed(3, own, { key, name: "other" }), () => `got ${key}/other, expected ${key}/film`],
  ["another key inside", () => signed(3, own, { key: otherKey, name: "film" }), () => `got ${otherKey}/film`],
])("a manifest with %s does not play", async (_what, made, why) => {
  const { origo, play } = build();
  origo.manifest = await made();
  expect(await play()).toContain(why());
});

test("an older revision is refused once a newer one was seen, and the newer one plays on", async () => {
  const { origo, clock, play } = build();
  origo.manifest = await signed(3);
  await play();
  origo.manifest = await signed(2);
  clock.nowMs = 61_000;
  await play();
  expect([await play(), await play("film.m3u8")]).toEqual(["3 from a", "3 from a"]);
  expect(origo.asked).toBeGreaterThan(1);
});

test("an older revision is named if nothing newer is kept", async () => {
  const seen = new RevisionsInMemory();
  const first = build(seen);
  first.origo.manifest = await signed(3);
  await first.play();
  const second = build(seen);
  second.origo.manifest = await signed(2);
  expect(await second.play()).toBe("The manifest of film is an old one: got revision 2, seen 3.");
});

test("a newer revision of a playlist plays a minute later, though no other file is asked for", async () => {
  const { origo, clock, play } = build();
  origo.manifest = await signed(3);
  expect(await play("film.m3u8")).toBe("3 from a");
  origo.manifest = await signed(4);
  clock.nowMs = 61_000;
  expect(await play("film.m3u8")).toBe("4 from a");
});

test("without Origo a kept manifest plays on, and the others say why they do not", async () => {
  const { origo, clock, play } = build();
  origo.isAway = true;
  expect(await play()).toBe("Origo at http://origo cannot be reached: fetch failed");
  origo.isAway = false;
  origo.manifest = await signed(3);
  await play();
  origo.isAway = true;
  clock.nowMs = DAY_MS;
  expect([await play(), await play("film.m3u8")]).toEqual(["3 from a", "3 from a"]);
});

test.each([-DAY_MS, DAY_MS])("a clock that is %d ms off changes nothing", async (offMs) => {
  const { origo, clock, play } = build();
  clock.epochMs += offMs;
  origo.manifest = await signed(3);
  expect(await play()).toBe("3 from a");
});
