/**
 * Sets up a clone: dependencies, native addons, TypeScript, bundles and, on request, Chromium, Firefox, a C++ compiler,
 * PostgreSQL, Redis and players (mpv, VLC). `npm start` and `npm test` run it first. A step with unchanged inputs is
 * skipped. It needs only node.
 *
 *   node infra/setup.mjs [--browser] [--firefox] [--compiler] [--database] [--players]
 *
 * Prints one line per step with its seconds. A step that fails shows its command and output. Exit status: 0 done,
 * 1 failed, 2 bad option.
 */
import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { constants } from "node:os";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { postgresFolder } from "./postgres.mjs";

export const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "..");
const NODE_VERSION_MIN = [20, 19];
const PLAYER_PACKAGES = ["mpv", "vlc-bin", "vlc-plugin-base"];
const stampDir = path.join(root, "node_modules/.tributary-setup");

/** A failure whose message is for a person: a sentence, or a command with its output. */
export class SetupError extends Error {}

/**
 * Does everything that is not done yet. Throws SetupError. `tools` are Debian packages, each with a command of it.
 */
export async function setUp({
  browser = false,
  firefox = false,
  compiler = false,
  database = false,
  players = false,
  tools = [],
  print = console.log,
} = {}) {
  checkNodeVersion();
  const step = async (name, work) => {
    const startedMs = Date.now();
    const note = await work();
    print(`set-up: ${name.padEnd(14)} ${note ?? "done"} (${((Date.now() - startedMs) / 1000).toFixed(1)} s)`);
  };
  await step("dependencies", installDependencies);
  if (compiler)
    await step("C++ compiler", () => ensureDebianTool("a C++ compiler (g++)", ["g++"], () => onPath("g++")));
  // Each of the two leaves a core idle for long.
  const builds = await Promise.allSettled([
    step("native transport", buildNativeTransport),
    (async () => {
      await step("native addon", buildNativeAddon);
      await step("TypeScript", compileTypeScript);
      await step("extension", () =>
        bundle(
          "extension",
          ["extension", "client", "protocol", "wasm-codec", "contract"],
          "extension/dist/firefox/manifest.json",
        ),
      );
      await step("dashboard", () => bundle("origo", ["origo", "contract"], "origo/dist/dashboard/index.html"));
    })(),
  ]);
  for (const { reason } of builds) if (reason !== undefined) throw reason;
  if (database) await step("PostgreSQL", () => ensureDebianTool("PostgreSQL", ["postgresql"], postgresFolder));
  if (players) await step("players", () => ensureDebianTool("mpv and VLC", PLAYER_PACKAGES, () => playersPath()));
  if (database) await step("Redis", () => ensureDebianTool("Redis", ["redis-server"], () => onPath("redis-server")));
  for (const { name, command } of tools) await step(name, () => ensureDebianTool(name, [name], () => onPath(command)));
  if (browser) await step("Chromium", () => ensureDebianTool("Chromium", ["chromium"], () => browserPath("Chromium")));
  if (firefox)
    await step("Firefox", () =>
      ensureDebianTool("Firefox", ["firefox-esr", "libavcodec-extra"], () => browserPath("Firefox")),
    );
}

export function checkNodeVersion(version = process.versions.node) {
  const [major, minor] = version.split(".").map(Number);
  const [majorMin, minorMin] = NODE_VERSION_MIN;
  if (major > majorMin || (major === majorMin && minor >= minorMin)) return;
  throw new SetupError(
    `Tributary needs node ${majorMin}.${minorMin} or newer, this is node ${version}: install a newer one and try again`,
  );
}

async function installDependencies() {
  if (dependenciesCurrent()) return "unchanged";
  const npm = process.env.npm_execpath ? [process.execPath, process.env.npm_execpath] : ["npm"];
  await run([...npm, "ci", "--no-audit", "--no-fund"]);
  return "installed";
}

/** Whether node_modules holds what package-lock.json names. npm describes the tree in a hidden lock file. */
function dependenciesCurrent() {
  const hidden = path.join(root, "node_modules/.package-lock.json");
  if (!existsSync(hidden)) return false;
  const wanted = JSON.parse(readFileSync(path.join(root, "package-lock.json"), "utf8")).packages;
  const present = JSON.parse(readFileSync(hidden, "utf8")).packages;
  return Object.entries(wanted).every(([place, entry]) => {
    if (!place.includes("node_modules/")) return true;
    const found = present[place];
    if (!found || !existsSync(path.join(root, place)))
      return Boolean(entry.optional || entry.devOptional || entry.peer);
    return found.version === entry.version && found.resolved === entry.resolved;
  });
}

/** A failure is not fatal: without the addon a proxy codes with the WebAssembly build. */
async function buildNativeAddon() {
  const inputs = ["native-codec", "package-lock.json"];
  const stamp = stampOf("native-addon", inputs, process.versions.modules + process.arch);
  if (stamp.current) return "unchanged";
  try {
    await run([process.execPath, "native-codec/build.mjs"]);
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
    return `WARNING: not built, the slower WebAssembly codec serves instead. ${error.message}\nset-up: native addon  `;
  }
  stamp.write();
  return "built";
}

/** A failure is not fatal: without the addon the proxies offer WebRTC only. */
async function buildNativeTransport() {
  const stamp = stampOf("native-transport", ["native-transport"], process.arch);
  if (stamp.current && existsSync(path.join(root, "native-transport/build/native-transport.node"))) return "unchanged";
  try {
    await run([process.execPath, "native-transport/build.mjs"]);
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
    const reason = error.message
      .trimEnd()
      .split("\n")
      .at(-1)
      .replace(/^native-transport: /, "");
    return `not built, WebRTC carries the packets: ${reason}`;
  }
  stamp.write();
  return "built";
}

async function compileTypeScript() {
  const projects = JSON.parse(readFileSync(path.join(root, "tsconfig.json"), "utf8")).references.map(
    (reference) => reference.path,
  );
  const complete = projects.every((project) => existsSync(path.join(root, project, "dist")));
  await run([process.execPath, "node_modules/typescript/bin/tsc", "-b", ...(complete ? [] : ["--force"])]);
}

/** Runs webpack with the configuration in `folder`. `output` is one of the files that it makes. */
async function bundle(folder, inputs, output) {
  const stamp = stampOf(`bundle-${folder}`, [...inputs, "package-lock.json", "tsconfig.base.json"]);
  if (stamp.current && existsSync(path.join(root, output))) return "unchanged";
  await run([process.execPath, "node_modules/webpack/bin/webpack.js", "--config", `${folder}/webpack.config.js`]);
  stamp.write();
  return "bundled";
}

async function browserPath(name) {
  const finders = await import(pathToFileURL(path.join(root, "lab/stack/dist/chromium.js")).href);
  const found = finders[`find${name}`]();
  const variable = name.toUpperCase();
  if (!found && process.env[variable])
    throw new SetupError(
      `the variable ${variable} names ${process.env[variable]}, which is not a program that can be run`,
    );
  return found;
}

/** Finds a tool. As root on Debian it installs a missing one. */
async function ensureDebianTool(what, packages, find) {
  const found = await find();
  if (found) return found;
  if (process.getuid?.() !== 0 || !onPath("apt-get")) {
    throw new SetupError(
      `${what} is needed and was not found: install it (on Debian: sudo apt-get install ${packages.join(" ")})`,
    );
  }
  const env = { DEBIAN_FRONTEND: "noninteractive" };
  await run(["apt-get", "update", "-q"], env);
  await run(["apt-get", "install", "-q", "-y", "--no-install-recommends", ...packages], env);
  const installed = await find();
  if (!installed) throw new SetupError(`${what} was not found even after apt-get install ${packages.join(" ")}`);
  return `installed ${installed}`;
}

/** The places of both players, or undefined if one is missing. */
function playersPath() {
  const places = ["mpv", "vlc"].map(onPath);
  return places.includes(undefined) ? undefined : places.join(", ");
}

function onPath(name) {
  const found = spawnSync("sh", ["-c", `command -v ${name}`], { encoding: "utf8" });
  return found.status === 0 ? found.stdout.trim() : undefined;
}

const running = new Set();

/** A signal that ends this process first ends each running command, with everything that the command started. */
function endAll(signal) {
  for (const child of running)
    if (child.exitCode === null && child.pid !== undefined) process.kill(-child.pid, "SIGTERM");
  process.exit(128 + constants.signals[signal]);
}

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"];

/** Runs a command at the repository's root. It prints nothing; the error of a failed command has the output. */
function run(command, env = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command[0], command.slice(1), {
      cwd: root,
      env: { ...process.env, ...env },
      stdio: ["ignore", "pipe", "pipe"],
      // A group of its own, which a signal can end as a whole.
      detached: true,
    });
    if (running.size === 0) for (const signal of SIGNALS) process.on(signal, endAll);
    running.add(child);
    const forget = () => {
      running.delete(child);
      if (running.size === 0) for (const signal of SIGNALS) process.off(signal, endAll);
    };
    const output = [];
    child.stdout.on("data", (chunk) => output.push(chunk));
    child.stderr.on("data", (chunk) => output.push(chunk));
    child.once("error", (error) => {
      forget();
      reject(new SetupError(`cannot run ${command[0]}: ${error.message}`));
    });
    child.once("close", (code, signal) => {
      forget();
      if (code === 0) return resolve();
      const shown = command.map((word) => (word === process.execPath ? "node" : word)).join(" ");
      reject(
        new SetupError(
          `this command failed (${signal ?? `exit status ${code}`}):\n  ${shown}\n` +
            Buffer.concat(output).toString().trimEnd(),
        ),
      );
    });
  });
}

/** A stamp is a digest of a step's inputs: file names and contents, without build results. */
function stampOf(name, inputs, extra = "") {
  const hash = createHash("sha256").update(extra);
  for (const input of inputs) addToHash(hash, path.join(root, input));
  const digest = hash.digest("hex");
  const file = path.join(stampDir, name);
  return {
    current: existsSync(file) && readFileSync(file, "utf8") === digest,
    write() {
      mkdirSync(stampDir, { recursive: true });
      writeFileSync(file, digest);
    },
  };
}

function addToHash(hash, place) {
  if (!existsSync(place)) return;
  if (statSync(place).isDirectory()) {
    for (const name of readdirSync(place).sort()) {
      if (
        !["node_modules", "dist", "build", ".cache"].includes(name) &&
        !name.endsWith(".tsbuildinfo") &&
        !name.endsWith(".node")
      )
        addToHash(hash, path.join(place, name));
    }
    return;
  }
  hash.update(`${path.relative(root, place)}\0`).update(readFileSync(place));
}

/** Runs `main`, prints the message of a SetupError, and sets the exit status. */
export async function runMain(main) {
  try {
    process.exitCode = await main();
  } catch (error) {
    console.error(error instanceof SetupError ? error.message : error);
    process.exitCode = 1;
  }
}

async function main() {
  const known = ["--browser", "--firefox", "--compiler", "--database", "--players"];
  const unknown = process.argv.slice(2).find((option) => !known.includes(option));
  if (unknown) {
    console.error(`unknown option ${unknown}: node infra/setup.mjs takes ${known.join(", ")}`);
    return 2;
  }
  const asked = (option) => process.argv.includes(option);
  await setUp({
    browser: asked("--browser"),
    firefox: asked("--firefox"),
    compiler: asked("--compiler"),
    database: asked("--database"),
    players: asked("--players"),
  });
  return 0;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await runMain(main);
