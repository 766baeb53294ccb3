/**
 * `npm run test:fidelity -- [NAME ...]`: runs the cases whose names begin with one of the words, or all of them. It
 * prints every difference and what the origins were asked. `--list` prints the names, and `--firefox` runs the cases in
 * Firefox. The exit status is 0 if every
 * case passed, 1 if one differs, 2 for a word that no case has.
 */
import { CASES, OPEN } from "./cases";
import { FidelityLab, type Outcome } from "./run";

const FAULT_CHARACTERS = 1500;

async function main(given: readonly string[]): Promise<number> {
  const words = given.filter((word) => word !== "--firefox");
  if (words[0] === "--list") {
    for (const { name, long } of CASES)
      console.log(`${name}${OPEN.has(name) ? " (open)" : ""}${long ? " (long)" : ""}`);
    return 0;
  }
  const stranger = words.find((word) => !CASES.some(({ name }) => name.startsWith(word)));
  if (stranger !== undefined) {
    console.error(`no case begins with "${stranger}": npm run test:fidelity -- --list names them all`);
    return 2;
  }
  const chosen = CASES.filter(({ name }) => words.length === 0 || words.some((word) => name.startsWith(word)));
  const lab = await FidelityLab.open(chosen.length, words.length < given.length ? "firefox" : "chromium");
  const failed: string[] = [];
  try {
    for (const each of chosen) {
      const outcome = await lab.run(each);
      report(outcome);
      if (outcome.faults.length > 0) failed.push(each.name);
    }
  } finally {
    await lab.close();
  }
  if (failed.length > 0) console.log(`\ndifferent: ${failed.join(", ")}`);
  console.log(`${chosen.length - failed.length} passed, ${failed.length} failed`);
  return failed.length === 0 ? 0 : 1;
}

function report({ name, faults, asked, ms }: Outcome): void {
  const reason = OPEN.get(name);
  console.log(`${faults.length === 0 ? "same " : "OTHER"} ${name} (${(ms / 1000).toFixed(1)} s)`);
  if (reason !== undefined) console.log(`      open: ${reason}`);
  if (faults.length === 0) return;
  for (const fault of faults) console.log(`      ${fault.slice(0, FAULT_CHARACTERS)}`);
  for (const [side, lines] of Object.entries(asked)) console.log(`      asked ${side}: ${lines.join(", ")}`);
}

void main(process.argv.slice(2)).then(
  (status) => process.exit(status),
  (error: unknown) => {
    console.error(error);
    process.exit(1);
  },
);
