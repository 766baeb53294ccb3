import { mkdtemp, rm, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { readSiteRules } from "./site-rules";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), "origo-rules-"));
});
afterAll(() => rm(folder, { recursive: true }));

const read = async (content: string): Promise<unknown> => {
  const file = path.join(folder, "site-rules.json");
  await writeFile(file, content);
  return readSiteRules(file);
};
const rule = { host: "*.video.example", path: "/chunk/*", carried: true };

describe("site rules", () => {
  test("without the file there are no rules", async () =>
    expect(await readSiteRules(path.join(folder, "missing.json"))).toEqual({ rules: [] }));
  test("the rules of the file are returned unchanged", async () =>
    expect(await read(JSON.stringify({ rules: [rule] }))).toEqual({ rules: [rule] }));
  test.each<[string, string]>([
    ["no JSON", "{"],
    ["a rule without a path", JSON.stringify({ rules: [{ host: "*", carried: true }] })],
    ["a host that is an address", JSON.stringify({ rules: [{ ...rule, host: "https://video.example" }] })],
    ["a path that does not begin with a slash", JSON.stringify({ rules: [{ ...rule, path: "*.bin" }] })],
    ["101 rules", JSON.stringify({ rules: Array(101).fill(rule) })],
  ])("%s is refused", async (_name, content) => expect(read(content)).rejects.toThrow());
});
