/** Samples on disk: one JSON value a line, in a plain file that grows and a packed one beside it, `FILE.gz`. */
import { appendFileSync, existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { gunzipSync, gzipSync } from "node:zlib";

const linesOf = (samples: readonly unknown[]): string => samples.map((each) => `${JSON.stringify(each)}\n`).join("");

export function appendSamples(file: string, samples: readonly unknown[]): void {
  appendFileSync(file, linesOf(samples));
}

/** The packed samples, then the plain ones. Leaves out a line that was cut short when the machine went down. */
export function readSamples<Sample>(file: string): Sample[] {
  const packed = existsSync(`${file}.gz`) ? gunzipSync(readFileSync(`${file}.gz`)).toString() : "";
  const plain = existsSync(file) ? readFileSync(file, "utf8") : "";
  return (packed + plain).split("\n").flatMap((line) => {
    try {
      return [JSON.parse(line) as Sample];
    } catch {
      return [];
    }
  });
}

/** Puts all samples into the packed file and deletes the plain one. */
export function packSamples(file: string, samples: readonly unknown[]): void {
  writeFileSync(`${file}.gz`, gzipSync(linesOf(samples), { level: 9 }));
  rmSync(file, { force: true });
}
