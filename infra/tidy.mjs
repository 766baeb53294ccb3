/**
 * The rules of the house that a tool can hold: `node infra/tidy.mjs`. Each rule prints its faults, one a line. The last
 * line is `N passed, N failed` over the rules.
 *
 * The map in ARCHITECTURE.md says which folder may import which. It is read here, so it cannot differ from the code.
 */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { cruise } from "dependency-cruiser";
import { root } from "./setup.mjs";

const LINES_MAX = 500;
const COLUMNS_MAX = 120;
const DOCS_WORDS_MAX = 10300;
const RESULTS_LINES_MAX = 200;

/** Files that a program writes. */
const GENERATED = [
  /(^|\/)(package-lock\.json|Cargo\.lock)$/,
  /^wasm-codec\/module\//,
  /^docs\/spec\/(records|settings)\.md$/,
];
const CODE = /\.(ts|tsx|mjs|js|rs|cc|h|css)$/;
const SCRIPT = /\.(ts|tsx|mjs|js)$/;
const TEXT = /\.(ts|tsx|mjs|js|rs|cc|h|css|html|json|yaml|yml|toml|md|sh|Dockerfile)$/;
/** A test may import what other tests share: a folder named test. */
const TEST_FILE = /\.test\.tsx?$|(^|\/)test(-browser)?\//;

const files = execFileSync("git", ["ls-files"], { cwd: root, encoding: "utf8" })
  .split("\n")
  .filter((file) => file !== "" && existsSync(path.join(root, file)));
const written = files.filter((file) => !GENERATED.some((pattern) => pattern.test(file)));
const read = (file) => readFileSync(path.join(root, file), "utf8");
const linesOf = (file) => read(file).replace(/\n$/, "").split("\n");

/** Package name -> its folder. */
const packages = new Map(
  JSON.parse(read("package.json"))
    .workspaces.flatMap((entry) => (entry.endsWith("/*") ? foldersIn(entry.slice(0, -2)) : [entry]))
    .map((folder) => [JSON.parse(read(`${folder}/package.json`)).name, folder]),
);

function foldersIn(parent) {
  const pattern = new RegExp(`^${parent}/[^/]+/package\\.json$`);
  return files.filter((file) => pattern.test(file)).map((file) => path.dirname(file));
}

const EVERYTHING = { has: () => true, *[Symbol.iterator]() {} };
const map = readMap();

/** The folder of the map that holds the file: the innermost one. */
function folderOf(file) {
  let best;
  for (const folder of map.keys())
    if (file.startsWith(`${folder}/`) && folder.length > (best?.length ?? 0)) best = folder;
  return best;
}

let graph;
/** Every script's imports, types included. */
async function imports() {
  if (graph) return graph;
  const options = {
    tsPreCompilationDeps: true,
    doNotFollow: { path: "node_modules|/dist/|/build/" },
    validate: true,
    ruleSet: { forbidden: [{ name: "cycle", severity: "error", from: {}, to: { circular: true } }] },
  };
  const scripts = written.filter(
    (file) => SCRIPT.test(file) && folderOf(file) !== undefined && !file.includes("/sample/pages/"),
  );
  const { output } = await cruise(scripts, options, { extensions: [".ts", ".tsx", ".mjs", ".js"] });
  graph = output;
  return graph;
}

/** The rows of the map: folder -> the folders that it may import. */
function readMap() {
  const section = read("ARCHITECTURE.md")
    .split(/^## /m)
    .find((part) => part.startsWith("The map"));
  const rows = (section ?? "").matchAll(/^\| `([\w/-]+)\/` \|[^|\n]*\|([^|\n]*)\|$/gm);
  const named = (cell) =>
    cell.trim() === "everything"
      ? EVERYTHING
      : new Set([...cell.matchAll(/`([\w/-]+)\/`/g)].map(([, folder]) => folder));
  return new Map([...rows].map(([, folder, may]) => [folder, named(may)]));
}

async function importFaults() {
  const faults = [];
  for (const folder of packages.values()) if (!map.has(folder)) faults.push(`${folder}/ is not on the map`);
  for (const folder of map.keys())
    if (!existsSync(path.join(root, folder))) faults.push(`the map names ${folder}/, which does not exist`);
  const used = new Set();
  for (const { source, dependencies } of (await imports()).modules) {
    const from = folderOf(source);
    for (const { module, resolved } of from === undefined ? [] : dependencies) {
      const [name] = module.match(/^@tributary\/[^/]+/) ?? [];
      const to = name === undefined ? folderOf(resolved) : packages.get(name);
      if (to === undefined || to === from || to === "infra") continue;
      const isShared = TEST_FILE.test(source) && TEST_FILE.test(resolved);
      if (name === undefined && !isShared) faults.push(`${source} reaches past the door of ${to}/: ${module}`);
      if (TEST_FILE.test(source) && from !== "test") continue;
      used.add(`${from} ${to}`);
      if (!map.get(from)?.has(to)) faults.push(`${source} imports ${module}: ${from}/ may not import ${to}/`);
    }
  }
  for (const [folder, may] of map)
    for (const to of may)
      if (!used.has(`${folder} ${to}`)) faults.push(`the map lets ${folder}/ import ${to}/, but nothing does`);
  return [...new Set(faults)];
}

async function cycleFaults() {
  return (await imports()).summary.violations.map(({ from, cycle }) =>
    [from, ...cycle.map(({ name }) => name)].join(" -> "),
  );
}

function lengthFaults() {
  return written
    .filter((file) => TEXT.test(file))
    .map((file) => [file, linesOf(file).length])
    .filter(([, count]) => count > LINES_MAX)
    .map(([file, count]) => `${file} has ${count} lines; the limit is ${LINES_MAX}`);
}

function widthFaults() {
  return written
    .filter((file) => CODE.test(file))
    .flatMap((file) =>
      linesOf(file)
        .map((line, index) => [index + 1, [...line].length])
        .filter(([, columns]) => columns > COLUMNS_MAX)
        .map(([line, columns]) => `${file}:${line} has ${columns} columns; the limit is ${COLUMNS_MAX}`),
    );
}

function nameFaults() {
  return written
    .filter((file) => SCRIPT.test(file) && !/^[a-z0-9]+(-[a-z0-9]+)*(\.[a-z0-9-]+)*\.\w+$/.test(path.basename(file)))
    .map((file) => `${file} is not in kebab-case`);
}

function docsFaults() {
  const faults = [];
  const pages = files.filter((file) => file.endsWith(".md"));
  const brief = pages.filter((file) => file.startsWith("docs/") && !/^docs\/(spec|adr)\//.test(file));
  const words = brief
    .map((file) => read(file).split(/\s+/).filter(Boolean).length)
    .reduce((sum, count) => sum + count, 0);
  if (words > DOCS_WORDS_MAX)
    faults.push(`docs/ outside spec/ and adr/ has ${words} words; the limit is ${DOCS_WORDS_MAX}`);
  const results = existsSync(path.join(root, "docs/results.md")) ? linesOf("docs/results.md").length : 0;
  if (results > RESULTS_LINES_MAX)
    faults.push(`docs/results.md has ${results} lines; the limit is ${RESULTS_LINES_MAX}`);
  for (const page of pages)
    for (const [, target] of read(page).matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^[a-z]+:/.test(target)) continue;
      const [file, anchor] = target.split("#");
      const at = file === "" ? page : path.join(path.dirname(page), file);
      if (!existsSync(path.join(root, at))) faults.push(`${page} links to ${target}, which does not exist`);
      else if (anchor && at.endsWith(".md") && !anchorsOf(at).has(anchor))
        faults.push(`${page} links to ${target}: no such heading`);
    }
  const shown = pages.map(read).join("\n");
  for (const image of files.filter((file) => file.startsWith("docs/images/")))
    if (!shown.includes(path.basename(image))) faults.push(`${image} is shown on no page`);
  return faults;
}

/** Headings as GitHub names them. */
function anchorsOf(page) {
  return new Set(
    [...read(page).matchAll(/^#+ (.*)$/gm)].map(([, heading]) =>
      heading
        .toLowerCase()
        .replace(/[^\p{L}\p{N} _-]/gu, "")
        .replaceAll(" ", "-"),
    ),
  );
}

/** A workspace that the compiler does not know is not checked, in silence. */
function workspaceFaults() {
  const references = JSON.parse(read("tsconfig.json")).references.map((entry) => path.normalize(entry.path));
  return [...packages.values()]
    .filter((folder) => existsSync(path.join(root, folder, "tsconfig.json")) && folder !== "test")
    .filter((folder) => !references.includes(folder))
    .map((folder) => `tsconfig.json has no reference to ${folder}/`);
}

const RULES = [
  ["imports follow the table in ARCHITECTURE.md", importFaults],
  ["no import cycles", cycleFaults],
  [`no file has more than ${LINES_MAX} lines`, lengthFaults],
  [`no line has more than ${COLUMNS_MAX} columns`, widthFaults],
  ["script names are in kebab-case", nameFaults],
  ["documents are short, and their links and pictures exist", docsFaults],
  ["every workspace is known to the compiler", workspaceFaults],
];

let failed = 0;
for (const [name, check] of RULES) {
  const faults = await check();
  if (faults.length === 0) continue;
  failed += 1;
  console.log(`\n${name}: ${faults.length} faults\n  ${faults.join("\n  ")}`);
}
console.log(`${RULES.length - failed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
