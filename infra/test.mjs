/**
 * `npm test`: sets up the clone with Chromium, Firefox, a C++ compiler and PostgreSQL, then runs every step. The steps
 * in which nothing waits for a clock run first, two at a time. Then the others run in order. A failed step does not
 * stop the next ones.
 *
 *   node infra/test.mjs [--only STEP]      STEP: lint, tidy, types, unit, sim, cpp, rust, web, origo, e2e, matrix
 *
 * A failed step shows its output and the command that repeats it, or a command for each failed test of Jest. The last
 * line is `N passed, N failed` over all steps.
 */
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { root, runMain, setUp } from "./setup.mjs";

const bin = {
  eslint: "node_modules/eslint/bin/eslint.js",
  tsc: "node_modules/typescript/bin/tsc",
  jest: "node_modules/jest/bin/jest.js",
};

const sim = "lab/sim/dist/main.js";

const LANES = 2;

/**
 * `isCalm` steps neither measure time nor wait for answers, so others may run beside them. The longest is the first.
 * `count` turns the outcome of the commands into {passed, failed, skipped}. `repeat` is the command for a person.
 * `show` matches output lines that are printed even if the step passes.
 */
const STEPS = [
  {
    name: "cpp",
    isCalm: true,
    commands: [["native-codec/test.mjs"]],
    repeat: "node native-codec/test.mjs",
    count: countPrinted,
  },
  {
    name: "rust",
    isCalm: true,
    commands: [["native-transport/test.mjs"]],
    repeat: "node native-transport/test.mjs",
    count: countPrinted,
  },
  {
    name: "sim",
    isCalm: true,
    commands: [
      [sim, "swarm", "--runs", "2000"],
      [sim, "planted"],
    ],
    repeat: "npm run sim -- swarm --runs 2000 && npm run sim -- planted",
    count: countPrinted,
    show: /^swarm: .*$/gm,
  },
  {
    name: "lint",
    isCalm: true,
    commands: [
      [bin.eslint, "."],
      ["infra/format.mjs", "--check"],
    ],
    repeat: "npm run lint",
    count: countOne,
  },
  {
    name: "types",
    isCalm: true,
    commands: [
      [bin.tsc, "-b"],
      [bin.tsc, "-p", "origo/dashboard", "--noEmit"],
      [bin.tsc, "-p", "tsconfig.test.json", "--noEmit"],
    ],
    repeat: "npx tsc -b && npx tsc -p origo/dashboard --noEmit && npx tsc -p tsconfig.test.json --noEmit",
    count: countOne,
  },
  { name: "tidy", isCalm: true, commands: [["infra/tidy.mjs"]], repeat: "node infra/tidy.mjs", count: countPrinted },
  { name: "unit", commands: [[bin.jest, "--maxWorkers=3"]], repeat: "npx jest", count: countJest },
  {
    name: "web",
    commands: [["extension/test-browser/transparency.mjs"], ["extension/test-browser/interface.mjs"]],
    repeat: "node extension/test-browser/transparency.mjs && node extension/test-browser/interface.mjs",
    count: countPrinted,
  },
  {
    name: "origo",
    commands: [[bin.jest, "--config", "origo/test-browser/jest.config.js", "--runInBand"]],
    repeat: "npx jest --config origo/test-browser/jest.config.js --runInBand",
    count: countJest,
  },
  {
    name: "e2e",
    commands: [[bin.jest, "--config", "test/jest.config.js", "--runInBand"]],
    repeat: "npx jest --config test/jest.config.js --runInBand",
    count: countJest,
  },
  {
    name: "matrix",
    commands: [["test/dist/matrix/main.js", "--short"]],
    repeat: "npm run test:matrix -- --short",
    count: countPrinted,
  },
];

function countOne({ status }) {
  return status === 0 ? { passed: 1, failed: 0 } : { passed: 0, failed: 1 };
}

/** Sums the lines `N passed, N failed` that the commands printed. */
function countPrinted({ status, output }) {
  const counts = { passed: 0, failed: 0 };
  for (const [, passed, failed] of output.matchAll(/^(\d+) passed, (\d+) failed$/gm)) {
    counts.passed += Number(passed);
    counts.failed += Number(failed);
  }
  return status !== 0 && counts.failed === 0 ? { ...counts, failed: 1 } : counts;
}

/** Jest's own numbers. A file that does not load counts as one failure. */
function countJest({ status, report }) {
  if (!report) return { passed: 0, failed: 1 };
  const failed = report.numFailedTests + report.numRuntimeErrorTestSuites;
  return {
    passed: report.numPassedTests,
    failed: status !== 0 && failed === 0 ? 1 : failed,
    skipped: report.numPendingTests,
  };
}

function runNode(words) {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, words, { cwd: root, stdio: ["ignore", "pipe", "pipe"] });
    const output = [];
    child.stdout.on("data", (chunk) => output.push(chunk));
    child.stderr.on("data", (chunk) => output.push(chunk));
    child.once("error", (error) => resolve({ status: 1, output: error.message }));
    child.once("close", (status) => resolve({ status: status ?? 1, output: Buffer.concat(output).toString() }));
  });
}

async function runStep(step) {
  const folder = mkdtempSync(path.join(os.tmpdir(), "tributary-test-"));
  const reportFile = path.join(folder, "report.json");
  let [status, output, report] = [0, "", undefined];
  for (const command of step.commands) {
    const done = await runNode(step.count === countJest ? [...command, "--json", "--outputFile", reportFile] : command);
    output += done.output;
    status ||= done.status;
  }
  if (step.count === countJest) {
    report = readReport(reportFile);
    output = output
      .split("\n")
      .filter((line) => !line.startsWith('{"num'))
      .join("\n");
  }
  rmSync(folder, { recursive: true });
  const repeats = repeatsOf(step, report);
  return { ...step.count({ status, output, report }), output, repeats: repeats.length > 0 ? repeats : [step.repeat] };
}

/** A command for each test that failed, and for each file that did not load. Empty if the step is not Jest's. */
function repeatsOf({ repeat }, report) {
  return (report?.testResults ?? []).flatMap(({ name, status, assertionResults }) => {
    const file = `${repeat} ${path.relative(root, name)}`;
    const failed = assertionResults.filter((test) => test.status === "failed");
    if (failed.length === 0) return status === "failed" ? [file] : [];
    return failed.map(({ fullName }) => `${file} -t ${quoted(`^${fullName.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&")}$`)}`);
  });
}

/** As one word for a shell. */
function quoted(text) {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

function readReport(file) {
  try {
    return JSON.parse(readFileSync(file, "utf8"));
  } catch {
    return undefined;
  }
}

async function main() {
  const [option, only, ...rest] = process.argv.slice(2);
  const names = STEPS.map((step) => step.name);
  if (rest.length > 0 || (option !== undefined && (option !== "--only" || !names.includes(only)))) {
    console.error(
      `usage: npm test [-- --only STEP], STEP one of ${names.join(", ")}; got ${process.argv.slice(2).join(" ")}`,
    );
    return 2;
  }
  const steps = STEPS.filter((step) => only === undefined || step.name === only);
  const has = (name) => steps.some((step) => step.name === name);
  const seen = ["e2e", "web", "origo", "matrix"].some(has);
  const tools = [
    ...(has("unit") ? ["zsh", "fish"].map((name) => ({ name, command: name })) : []),
    ...(has("e2e") ? [{ name: "ffmpeg", command: "ffprobe" }] : []),
  ];
  const firefox = has("e2e") || has("matrix");
  await setUp({ browser: seen, firefox, compiler: has("cpp"), database: has("unit"), players: has("e2e"), tools });
  const sum = { passed: 0, failed: 0 };
  const runAndTell = async (step) => {
    const startedMs = Date.now();
    const { passed, failed, skipped, output, repeats } = await runStep(step);
    sum.passed += passed;
    sum.failed += failed;
    for (const line of (step.show && output.match(step.show)) ?? []) console.log(line);
    if (failed > 0) console.log(`\n${output.trimEnd()}\n\n${repeats.map((line) => `to repeat: ${line}`).join("\n")}`);
    const seconds = ((Date.now() - startedMs) / 1000).toFixed(1);
    const counts = `${passed} passed, ${failed} failed${skipped ? `, ${skipped} skipped` : ""}`;
    console.log(`${step.name.padEnd(6)} ${counts} (${seconds} s)`);
  };
  const calm = steps.filter((step) => step.isCalm).values();
  const lane = async () => {
    for (const step of calm) await runAndTell(step);
  };
  await Promise.all(Array.from({ length: LANES }, lane));
  for (const step of steps.filter((each) => !each.isCalm)) await runAndTell(step);
  console.log(`${sum.passed} passed, ${sum.failed} failed`);
  return sum.failed === 0 && sum.passed > 0 ? 0 : 1;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await runMain(main);
