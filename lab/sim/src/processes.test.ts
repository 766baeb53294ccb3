import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { Helper, inProcesses } from "./processes";

const folder = mkdtempSync(path.join(os.tmpdir(), "tributary-processes-"));
const file = path.join(folder, "doubles.js");
writeFileSync(
  file,
  `process.on("message", ({ value }) => {
  if (value === -1) process.exit(3);
  if (value !== -2) process.send(2 * value);
});`,
);
afterAll(() => rmSync(folder, { recursive: true }));

test("processes: each job is done once, and its result comes with its index", async () => {
  const results: number[] = [];
  await inProcesses<{ value: number }, number>(
    file,
    [5, 6, 7, 8, 9].map((value) => ({ value })),
    (result, index) => (results[index] = result),
  );
  expect(results).toEqual([10, 12, 14, 16, 18]);
});

test("processes: no process starts without a job", async () => {
  await inProcesses("there is no such file", [], () => undefined);
});

test("processes: a job fails if its process ends or does not answer", async () => {
  const [ends, hangs] = [new Helper<{ value: number }, number>(file), new Helper<{ value: number }, number>(file)];
  try {
    await expect(ends.ask({ value: 1 })).resolves.toBe(2);
    await expect(ends.ask({ value: -1 })).rejects.toThrow("the process ends with status 3");
    await expect(ends.ask({ value: 1 })).rejects.toThrow("Channel closed");
    await expect(hangs.ask({ value: -2 }, 200)).rejects.toThrow("does not end within 0.2 s");
  } finally {
    hangs.end();
  }
});
