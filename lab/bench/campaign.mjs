/**
 * `npm run bench -- campaign`: set-up, the campaign (lab/bench/src/campaign), table, pictures, and the files asked for.
 *
 *     npm run bench -- campaign [--quick] [--row TEXT] [--resume DIR] [--report] [--json FILE] [--docs] [--list]
 *
 * --quick        a few boxes of each set, ten minutes, fifteen on slow processors; without it the whole campaign, many
 * hours
 * --row TEXT     measures only boxes whose name (--list) has TEXT, such as "6x896 KB/s, RTT 50 ms, loss 0 %"; the
 * report is of all
 *     --resume DIR   goes on with a campaign that was stopped (Ctrl-C)
 *     --report       draws what DIR has, and measures nothing
 *     --json FILE    a row a box (lab/bench/src/campaign/rows.ts), as an array
 * --docs         writes the section `Campaign` of docs/measurements.md, its pictures, and docs/campaign: the table of
 * boxes
 *                    and the downloads, from where --resume docs/campaign goes on
 *     --list         the boxes and how long each is expected to take, and nothing else
 *
 * Downloads, pictures and report.html are kept in DIR, a new folder of the system's temporary one unless it is given. A
 * campaign may be gone on with on another machine or with other code: the report names each sitting. Exit status: 0
 * measured, 1 could not measure, 2 bad option, 130 stopped.
 */
import { execFileSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { root, setUp, SetupError } from "../../infra/setup.mjs";

const USAGE =
  "usage: npm run bench -- campaign [--quick] [--row TEXT] [--resume DIR] [--report] [--json FILE] [--docs] [--list]";
/**
 * The links of the whole campaign come up anew for each of these shares of the visits: stopped early, it has all boxes
 * about as often. Young programs keep the machine busy, so not more often.
 */
const PASSES = { quick: [1], full: [0.1, 0.8, 1] };

function parseOptions(args) {
  try {
    const flag = { type: "boolean", default: false };
    const { values } = parseArgs({
      args,
      options: {
        quick: flag,
        docs: flag,
        list: flag,
        report: flag,
        row: { type: "string", default: "" },
        json: { type: "string" },
        resume: { type: "string" },
      },
    });
    if (values.report && !values.resume) throw new Error("--report needs --resume DIR");
    return values;
  } catch (error) {
    console.error(`${USAGE}; ${error.message}`);
    return undefined;
  }
}

const PUBLISHED = path.join(root, "docs/campaign");
const loadCompiled = (name) => import(pathToFileURL(path.join(root, "lab/bench/dist", `${name}.js`)).href);
const fileOf = (name) => path.resolve(process.env.INIT_CWD ?? process.cwd(), name);
const minutes = (seconds) =>
  seconds < 5400
    ? `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, "0")}`
    : `${(seconds / 3600).toFixed(1)} h`;

/** A bar on a terminal; elsewhere a line when other links are up. */
function makeProgress() {
  let last = "";
  return ({ visitsDone, visitsTotal, secondsLeft, links: up }) => {
    const links = up.join(" + ");
    const width = 24;
    const filled = Math.round((width * visitsDone) / visitsTotal);
    const line = `[${"#".repeat(filled)}${"-".repeat(width - filled)}] ${visitsDone}/${visitsTotal} visits, ${minutes(secondsLeft)} left, ${links}`;
    if (process.stdout.isTTY) process.stdout.write(`\r\x1b[K${line.slice(0, process.stdout.columns - 1)}`);
    else if (links !== last) console.log(line);
    last = links;
  };
}

/** When, on what and of which code the downloads after the first `visits` visits are. */
async function sitting(visits) {
  const { machineText } = await loadCompiled("bench/machine");
  const git = (...words) => execFileSync("git", words, { cwd: root, encoding: "utf8" }).trim();
  const commit = existsSync(path.join(root, ".git"))
    ? git("rev-parse", "--short", "HEAD") + (git("status", "--porcelain") ? " with local changes" : "")
    : "unknown";
  return {
    date: new Date().toISOString().slice(0, 10),
    commit,
    machine: machineText(),
    loadAverage: os.loadavg()[0].toFixed(1),
    visits,
  };
}

/** What a campaign was begun with; one that is resumed keeps it. */
async function openFolder({ resume, quick }) {
  const folder = resume ? fileOf(resume) : mkdtempSync(path.join(os.tmpdir(), "tributary-campaign-"));
  mkdirSync(folder, { recursive: true });
  const file = path.join(folder, "campaign.json");
  const begun = existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : { quick, sittings: [] };
  /** A sitting without visits is forgotten with the next. */
  const begin = async (visits) => {
    while (begun.sittings.at(-1)?.visits === visits) begun.sittings.pop();
    begun.sittings.push(await sitting(visits));
    writeFileSync(file, `${JSON.stringify(begun, null, 1)}\n`);
  };
  return { folder, begun, begin };
}

async function drawAll(figures, folder) {
  const { draw, titleOf } = await import("../sim/draw.mjs");
  const drawn = [];
  for (const { name, title, subtitle, specification } of figures) {
    const { svg, png } = await draw({ ...specification, title: titleOf(title, subtitle) });
    writeFileSync(path.join(folder, `${name}.png`), png);
    drawn.push(svg);
  }
  return drawn;
}

const escaped = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");

const page = (text, pictures) => `<!doctype html><meta charset="utf-8"><title>Campaign</title>
<style>body{font:14px sans-serif;margin:2em;max-width:1100px}pre{overflow:auto;font-size:11px}svg{max-width:100%;height:auto}</style>
${pictures.join("\n")}
<pre>${escaped(text)}</pre>
`;

async function report({ boxes, samples, folder, begun, options }) {
  const [
    { calmSamples, rowsOf, visitsByBox },
    { figuresToReach, figureTable, rowTable, boxesDocument, madeBy, markdownSection, sittingsOf },
    { figuresOf },
    { visitsDone },
  ] = await Promise.all(["rows", "report", "figures", "run"].map((name) => loadCompiled(`bench/campaign/${name}`)));
  const done = visitsDone(boxes, visitsByBox(samples));
  const counted = calmSamples(samples);
  const about = {
    command: ["npm run bench -- campaign", begun.quick && "--quick"].filter(Boolean).join(" "),
    sittings: sittingsOf(begun.sittings, done),
    visits: { done, planned: boxes.reduce((sum, box) => sum + box.visits, 0) },
    downloads: { counted: counted.length, all: samples.length },
  };
  const rows = rowsOf(boxes, counted);
  const reached = figureTable(figuresToReach(rows), figuresToReach(rowsOf(boxes, samples)));
  const figures = figuresOf(boxes, counted, madeBy(about));
  const pictures = await drawAll(figures, folder);
  const text = `${reached}\n\n${rowTable(rows)}`;
  writeFileSync(path.join(folder, "report.html"), page(text, pictures));
  console.log(`\n${text}\n`);
  if (options.json) writeFileSync(fileOf(options.json), `${JSON.stringify(rows, null, 1)}\n`);
  if (!options.docs) return;
  for (const { name } of figures)
    copyFileSync(path.join(folder, `${name}.png`), path.join(root, "docs/images", `${name}.png`));
  mkdirSync(PUBLISHED, { recursive: true });
  if (folder !== PUBLISHED)
    for (const name of ["campaign.json", "downloads.jsonl.gz"])
      copyFileSync(path.join(folder, name), path.join(PUBLISHED, name));
  writeFileSync(path.join(PUBLISHED, "boxes.md"), boxesDocument(about, rows));
  const linked = figures.map((figure) => ({ ...figure, file: `images/${figure.name}.png` }));
  const { writeSection } = await loadCompiled("document");
  writeSection("campaign", "npm run bench -- campaign", markdownSection(about, rows, reached, linked));
}

function list(boxes, seconds) {
  for (const { id, figures, visits, expectedSec } of boxes)
    console.log(`${id}: ${visits} visits of ${expectedSec.toFixed(1)} s, set ${figures.join(", ")}`);
  console.log(`${boxes.length} boxes, ${minutes(seconds)} with one set of links at a time on an idle machine`);
}

/** Chromium and aria2 are runners and rivals, not conditions: without one its boxes are left out. */
async function available(boxes, print) {
  const has = { node: true };
  for (const [runner, wanted] of Object.entries({
    chromium: { browser: true },
    aria2: { tools: [{ name: "aria2", command: "aria2c" }] },
  })) {
    has[runner] = await setUp({ ...wanted, print: () => undefined }).then(
      () => true,
      (error) => {
        if (!(error instanceof SetupError)) throw error;
        print(`bench: its boxes are left out: ${error.message}`);
        return false;
      },
    );
  }
  return boxes.filter(({ runner }) => has[runner]);
}

export async function runCampaignBench(args) {
  const options = parseOptions(args);
  if (!options) return 2;
  await setUp({ compiler: true, print: options.list ? () => undefined : console.log });
  const [{ boxesOf }, { visitsByBox }, { runCampaign, expectedSeconds, readSamples, packDownloads, visitsDone }] =
    await Promise.all(["boxes", "rows", "run"].map((name) => loadCompiled(`bench/campaign/${name}`)));
  const passes = (quick) => (quick ? PASSES.quick : PASSES.full);
  const wanted = (boxes) => boxes.filter(({ id }) => id.includes(options.row));
  if (wanted(boxesOf(options.quick)).length === 0) {
    console.error(`${USAGE}; --row: got ${options.row}, which no box of --list has`);
    return 2;
  }
  if (options.list) {
    const boxes = wanted(boxesOf(options.quick));
    list(boxes, expectedSeconds(boxes, passes(options.quick)));
    return 0;
  }
  const { folder, begun, begin } = await openFolder(options);
  const samples = readSamples(folder);
  if (options.report) {
    packDownloads(folder, samples);
    await report({ boxes: boxesOf(begun.quick), samples, folder, begun, options });
    return 0;
  }
  await begin(visitsDone(boxesOf(begun.quick), visitsByBox(samples)));
  const all = await available(boxesOf(begun.quick), console.log);
  const boxes = wanted(all);
  let stopped = false;
  process.once("SIGINT", () => {
    stopped = true;
    process.stdout.write("\nstopping after this download; Ctrl-C again stops at once\n");
    process.once("SIGINT", () => process.exit(130));
  });
  console.log(
    `${boxes.length} boxes, ${minutes(expectedSeconds(boxes, passes(begun.quick)))} with one set of links at a time on an idle machine; downloads go to ${folder}`,
  );
  const failures = await runCampaign({
    boxes,
    folder,
    samples,
    passes: passes(begun.quick),
    stopped: () => stopped,
    onProgress: makeProgress(),
  });
  packDownloads(folder, samples);
  await report({ boxes: all, samples, folder, begun, options });
  for (const failure of failures) console.error(`could not be measured: ${failure}`);
  if (!stopped) return failures.length > 0 ? 1 : 0;
  console.log(`stopped; to go on: npm run bench -- campaign --resume ${folder}`);
  return 130;
}
