import type { Case, Group } from "./cases";
import { caseKey } from "./cases";
import { enginesOf, measureGroup, type Absences, type Runner } from "./driver";

const caseOf = (contender: string): Case => ({
  runner: "native",
  contender,
  path: "-",
  request: "encode",
  g: 24,
  symbolBytes: 1400,
  outputs: 1,
});
const group: Group = { name: "two", cases: [caseOf("ours"), caseOf("rival")] };

function scripted(answer: (line: string) => string): Runner & { lines: string[] } {
  const lines: string[] = [];
  return {
    lines,
    request: (line) => {
      lines.push(line);
      return Promise.resolve(answer(line));
    },
    close: () => Promise.resolve(),
  };
}

test("driver: cases take turns, each round begins with another one, and all is forgotten at the end", async () => {
  const native = scripted((line) => (line === "forget" ? "done" : "seconds 2e-6"));
  const measured = await measureGroup(group, { native }, { rounds: 2, sliceMs: 5 }, new Map());
  expect(native.lines.map((line) => line.split(" ")[1] ?? line)).toEqual(["ours", "rival", "rival", "ours", "forget"]);
  expect(measured.all().map(({ seconds }) => seconds)).toEqual([
    [2e-6, 2e-6],
    [2e-6, 2e-6],
  ]);
});

test("driver: an absent contender is noted with its reason, asked once, and never given a figure", async () => {
  const native = scripted((line) => (line.includes("rival") ? "absent no such path" : "seconds 1"));
  const absences: Absences = new Map();
  const measured = await measureGroup(group, { native }, { rounds: 3, sliceMs: 5 }, absences);
  expect([...absences]).toEqual([[caseKey(caseOf("rival")), "no such path"]]);
  expect(measured.all().map((one) => one.case.contender)).toEqual(["ours"]);
  expect(native.lines.filter((line) => line.includes("rival"))).toHaveLength(1);
});

test.each(["error the decoder's result is wrong", "seconds 0", "seconds nan"])(
  "driver: the answer %p ends the run",
  async (answer) => {
    await expect(
      measureGroup(group, { native: scripted(() => answer) }, { rounds: 1, sliceMs: 5 }, new Map()),
    ).rejects.toThrow(answer);
  },
);

test("driver: a runner that is absent has no engines, and its cases are absent", async () => {
  expect(await enginesOf(undefined)).toEqual([]);
  const absences: Absences = new Map();
  expect((await measureGroup(group, {}, { rounds: 1, sliceMs: 5 }, absences)).all()).toEqual([]);
  expect([...absences.values()]).toEqual(["no native runner", "no native runner"]);
});
