/**
 * `npm run bench -- protocol`: the simulated rows (lab/bench/src/protocol/bench.ts).
 * `npm run bench -- campaign`: downloads over emulated links (campaign.mjs).
 * `npm run bench -- origo`: Origo's storage and questions (origo/bench.mjs).
 * `npm run bench -- origo --fleet`: what a thousand proxies cost Origo (origo/fleet.mjs).
 * `npm run bench -- extension`: what the extension costs and changes in real browsers
 * (lab/bench/src/extension/bench.ts). `npm run bench -- video`: hls.js playing over emulated links
 * (lab/bench/src/video/bench.ts). `npm run bench -- profile`: where the time of a download goes, on both sides
 * (lab/bench/src/profile/bench.ts). `npm run bench -- transport`: transports over emulated links
 * (lab/bench/src/transport/bench.ts). `npm run bench -- codec`: set-up, contenders, measurements, table, and the files
 * asked for.
 *
 *     npm run bench -- codec [--quick] [--row TEXT] [--json FILE] [--picture FILE] [--docs]
 *
 *     --quick         the figures and few other shapes, about three minutes on two cores
 *     --row TEXT      only the groups of cases whose name contains TEXT, such as "through the addon"; not with --docs
 *     --json FILE     every row, as an array (lab/bench/src/codec/rows.ts)
 *     --picture FILE  writes FILE as .svg and as .png
 *     --docs          writes the section `Codec` of docs/measurements.md and its picture
 *
 * Exit status: 0 measured (a figure under its floor is a result, not a failure), 1 could not measure, 2 bad option.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { spawn, spawnSync } from "node:child_process";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { root, runMain, setUp, SetupError } from "../../infra/setup.mjs";

const USAGE =
  "usage: npm run bench -- protocol [--help], npm run bench -- campaign [--list], npm run bench -- transport [--quick] [--json FILE] [--docs] [--row TEXT], npm run bench -- extension [--quick] [--soak MINUTES] [--json FILE] [--docs], npm run bench -- video [--quick] [--list], npm run bench -- profile [--docs], npm run bench -- origo [--fleet | --quick] [--json FILE] [--docs], or npm run bench -- codec [--quick] [--row TEXT] [--json FILE] [--picture FILE] [--docs]";
const DOCUMENT_PICTURE = "images/codec";

function parseOptions(args) {
  try {
    const { values, positionals } = parseArgs({
      args,
      allowPositionals: true,
      options: {
        quick: { type: "boolean", default: false },
        row: { type: "string", default: "" },
        json: { type: "string" },
        picture: { type: "string" },
        docs: { type: "boolean", default: false },
      },
    });
    return positionals.length === 1 && positionals[0] === "codec" && !(values.docs && values.row) ? values : undefined;
  } catch {
    return undefined;
  }
}

/** Chromium is a runtime to measure in, not a condition: without it the bench goes on. */
async function setUpAll(print) {
  await setUp({ compiler: true, print });
  await setUp({ browser: true, print: () => undefined }).catch((error) => {
    if (!(error instanceof SetupError)) throw error;
    print(`bench: ${error.message}`);
  });
}

const loadCompiled = (name) => import(pathToFileURL(path.join(root, "lab/bench/dist", `${name}.js`)).href);

/** Relative to where the person typed the command. */
const fileOf = (name) => path.resolve(process.env.INIT_CWD ?? process.cwd(), name);

async function writePicture(run, base) {
  const { renderPicture } = await import("./codec/picture.mjs");
  const { svg, png } = await renderPicture(run);
  mkdirSync(path.dirname(base), { recursive: true });
  writeFileSync(`${base}.svg`, svg);
  writeFileSync(`${base}.png`, png);
}

async function writeDocument(run) {
  const { markdownSection } = await loadCompiled("codec/report");
  const { writeSection } = await loadCompiled("document");
  await writePicture(run, path.join(root, "docs", DOCUMENT_PICTURE));
  writeSection("codec", "npm run bench -- codec --docs", markdownSection(run, `${DOCUMENT_PICTURE}.png`));
}

/** What to type to measure the same again; where this run's files went is nobody else's matter. */
const commandOf = ({ quick, row, docs }) =>
  ["npm run bench -- codec", quick && "--quick", row && `--row "${row}"`, docs && "--docs"].filter(Boolean).join(" ");

/**
 * A bench that is a program of its own and reads its own options. A signal is passed on to it, so that it can stop
 * well; SIGINT of a terminal reaches it by itself.
 */
function runProgram(name, args) {
  const child = spawn(process.execPath, [path.join(root, "lab/bench/dist", `${name}.js`), ...args], {
    stdio: "inherit",
  });
  for (const signal of ["SIGINT", "SIGTERM"])
    process.on(signal, () => void (signal === "SIGINT" && process.stdin.isTTY ? undefined : child.kill(signal)));
  return new Promise((resolve) => child.once("exit", (code) => resolve(code ?? 1)));
}

async function runProtocolBench(args) {
  await setUp({ print: () => undefined });
  return runProgram("protocol/bench", args);
}

async function runTransportBench(args) {
  await setUpAll(() => undefined);
  return runProgram("transport/bench", args);
}

async function runProfileBench(args) {
  await setUp({ print: () => undefined });
  return runProgram("profile/bench", args);
}

async function runVideoBench(args) {
  await setUp({ compiler: true, browser: true, print: () => undefined });
  return runProgram("video/bench", args);
}

/** The stand-in transport's package has to be built for it. */
async function runExtensionBench(args) {
  await setUp({ browser: true, print: () => undefined });
  const webpack = path.join(root, "node_modules/webpack/bin/webpack.js");
  const built = spawnSync(
    process.execPath,
    [webpack, "--config", path.join(root, "extension/test-browser/webpack.config.js"), "--mode", "production"],
    { cwd: root },
  );
  if (built.status !== 0) throw new SetupError(`the stand-in extension could not be built: ${built.stdout}`);
  return runProgram("extension/bench", args);
}

async function main() {
  const args = process.argv.slice(2);
  if (args[0] === "transport") return runTransportBench(args.slice(1));
  if (args[0] === "video") return runVideoBench(args.slice(1));
  if (args[0] === "profile") return runProfileBench(args.slice(1));
  if (args[0] === "extension") return runExtensionBench(args.slice(1));
  if (args[0] === "protocol") return runProtocolBench(args.slice(1));
  if (args[0] === "campaign") return (await import("./campaign.mjs")).runCampaignBench(args.slice(1));
  if (args[0] === "origo" && args.includes("--fleet")) {
    await setUp({ print: () => undefined });
    return (await import("./origo/fleet.mjs")).runFleetBench(args.slice(1));
  }
  if (args[0] === "origo") return (await import("./origo/bench.mjs")).runOrigoBench(args.slice(1));
  const options = parseOptions(args);
  if (!options) {
    console.error(`${USAGE}; got ${args.join(" ")}`);
    return 2;
  }
  const print = console.log;
  await setUpAll(print);
  const { prepareContenders } = await import("./codec/setup.mjs");
  const tools = await prepareContenders(print);
  const { runCodecBench } = await loadCompiled("codec/bench");
  const { terminalTable } = await loadCompiled("codec/report");
  const run = await runCodecBench({
    tools,
    quick: options.quick,
    row: options.row,
    command: commandOf(options),
    print,
  });
  print(`\n${terminalTable(run.figures)}\n`);
  if (options.json) writeFileSync(fileOf(options.json), `${JSON.stringify(run.rows, null, 1)}\n`);
  if (options.picture) await writePicture(run, fileOf(options.picture).replace(/\.(svg|png)$/, ""));
  if (options.docs) await writeDocument(run);
  return 0;
}

await runMain(main);
