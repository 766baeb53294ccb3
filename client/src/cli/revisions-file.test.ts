import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { REVISIONS_MAX } from "../published/revisions";
import { RevisionsFile } from "./revisions-file";

const DAY_MS = 86_400_000;
let folder: string;
let file: string;
let nowMs = Date.now();
beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "revisions-"));
  file = path.join(folder, "new", "revisions.json");
});
afterEach(() => rm(folder, { recursive: true }));

const open = (): RevisionsFile => new RevisionsFile(file, () => nowMs);

test("a revision is known to the next run, and nobody reads in the file what was watched", async () => {
  await Promise.all([open().note("KEY/film", 3), open().note("KEY/film", 3)]);
  await open().note("KEY/other", 7);
  const next = open();
  expect([await next.highest("KEY/film"), await next.highest("KEY/other"), await next.highest("KEY/new")]).toEqual([
    3, 7, 0,
  ]);
  expect(await readFile(file, "utf8")).not.toMatch(/KEY|film/);
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  expect(await readdir(path.dirname(file))).toEqual(["revisions.json"]);
});

test("a revision is forgotten when it was not seen for a month, and not when the clock is a day off", async () => {
  await open().note("KEY/film", 3);
  nowMs -= DAY_MS;
  expect(await open().highest("KEY/film")).toBe(3);
  nowMs += 32 * DAY_MS;
  expect(await open().highest("KEY/film")).toBe(0);
});

test("the file keeps a bounded number of publications, the latest ones", async () => {
  const many = Array.from({ length: REVISIONS_MAX }, (_, index) => ({ id: String(index), revision: 1, seenMs: nowMs }));
  await open().note("KEY/film", 1);
  await writeFile(file, JSON.stringify(many));
  await open().note("KEY/film", 3);
  const kept = JSON.parse(await readFile(file, "utf8")) as { id: string }[];
  expect([kept.length, kept[0]?.id, await open().highest("KEY/film")]).toEqual([REVISIONS_MAX, "1", 3]);
});

test.each(["", "{", "[1]", `"${"x".repeat(200_000)}"`])("a damaged file is begun anew (%.5s)", async (text) => {
  await open().note("KEY/film", 1);
  await writeFile(file, text);
  expect(await open().highest("KEY/film")).toBe(0);
  await open().note("KEY/film", 3);
  expect(await open().highest("KEY/film")).toBe(3);
});

test("a file that cannot be written is no fault", async () => {
  await writeFile(path.join(folder, "new"), "not a folder");
  await open().note("KEY/film", 3);
  expect(await open().highest("KEY/film")).toBe(0);
});
