/**
 * Gets the contenders of `npm run bench -- codec` ready, everything under lab/bench/build: the native program from the
 * core's own sources and flags, ISA-L from Debian 13, the Rust crates, the bundle that Chromium runs. What cannot be
 * had on this machine is named with the reason; the bench then reports it absent. Nothing is installed.
 */
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import webpack from "webpack";
import { COMPILER, compile, compileAll, CORE_SOURCES } from "@tributary/native-codec/toolchain.mjs";

const here = path.dirname(fileURLToPath(import.meta.url));
const root = path.resolve(here, "../../..");
const cache = path.join(root, "lab/bench/build");

/** @typedef {{ file: string, note: string } | { absent: string }} Tool */

/** @returns {Promise<{ native: Tool, isaL: Tool, rust: Tool, bundle: Tool, compiler: string }>} */
export async function prepareContenders(print) {
  mkdirSync(cache, { recursive: true });
  const step = async (name, work) => {
    const startedMs = Date.now();
    const tool = await work().catch((error) => ({ absent: `${name}: ${error.message.trim().split("\n").at(-1)}` }));
    const seconds = ((Date.now() - startedMs) / 1000).toFixed(1);
    print(`bench: ${name.padEnd(15)} ${tool.absent ? `ABSENT: ${tool.absent}` : tool.note} (${seconds} s)`);
    return tool;
  };
  return {
    compiler: (await compile(["--version"])).split("\n")[0],
    native: await step("native program", buildNative),
    isaL: await step("ISA-L", fetchIsaL),
    rust: await step("Rust crates", buildRust),
    bundle: await step("browser bundle", bundleWorker),
  };
}

async function buildNative() {
  const folder = path.join(cache, "native");
  const file = path.join(folder, "native");
  const own = { file: path.join(here, "native.cc"), flags: ["-O2", "-I", here] };
  const objects = await compileAll([...CORE_SOURCES, own], ["-O3"], folder);
  await compile([...objects, "-ldl", "-o", file]);
  return { file, note: `built with ${COMPILER}` };
}

/** Debian 12's own ISA-L, 2.30, has no GFNI paths and would be no fair rival; Debian 13's runs on it. */
const KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg";
const ISAL_SUITE = "trixie";

async function fetchIsaL() {
  const folder = path.join(cache, "isa-l");
  const done = path.join(folder, "complete");
  if (!existsSync(done)) {
    rmSync(folder, { recursive: true, force: true });
    for (const part of ["state/lists/partial", "cache/archives/partial", "root"])
      mkdirSync(path.join(folder, part), { recursive: true });
    writeFileSync(
      path.join(folder, "sources.list"),
      `deb [signed-by=${KEYRING}] ${await debianMirror()} ${ISAL_SUITE} main\n`,
    );
    writeFileSync(path.join(folder, "status"), "");
    await downloadWithApt(folder, "libisal2");
    const archive = readdirSync(folder).find((name) => name.endsWith(".deb"));
    await run("dpkg", ["-x", path.join(folder, archive), path.join(folder, "root")]);
    for (const part of ["state", "cache"]) rmSync(path.join(folder, part), { recursive: true });
    writeFileSync(done, /^libisal2_([^-_]+)/.exec(archive)[1]);
  }
  const libraries = readdirSync(path.join(folder, "root/usr/lib"), { recursive: true }).map(String);
  const library = libraries.find((name) => /libisal\.so\.2\.\d/.test(name));
  return {
    file: path.join(folder, "root/usr/lib", library),
    note: `${readFileSync(done, "utf8")}, Debian ${ISAL_SUITE}`,
  };
}

/** The archive that this machine's apt uses for its own release. */
async function debianMirror() {
  const codename = /^VERSION_CODENAME=(.*)$/m.exec(readFileSync("/etc/os-release", "utf8"))?.[1];
  const targets = await run("apt-get", ["indextargets", "--format", "$(REPO_URI) $(CODENAME) $(COMPONENT)"]);
  const line = targets
    .split("\n")
    .map((text) => text.split(" "))
    .find((part) => part[1] === codename && part[2] === "main");
  if (!line) throw new Error("apt names no archive of this Debian release: run `apt-get update` first");
  return line[0];
}

/** With apt's own checks: the index is signed, the package has the index's digest. No privileges are needed. */
async function downloadWithApt(folder, packageName) {
  const settings = {
    "Dir::Etc::SourceList": path.join(folder, "sources.list"),
    "Dir::Etc::SourceParts": "/dev/null",
    "Dir::State": path.join(folder, "state"),
    "Dir::State::status": path.join(folder, "status"),
    "Dir::Cache": path.join(folder, "cache"),
    "APT::Sandbox::User": "root",
    "APT::Get::AllowUnauthenticated": "false",
    "Acquire::AllowInsecureRepositories": "false",
    "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled": "false",
    "Acquire::Languages": "none",
  };
  const options = Object.entries(settings).flatMap(([name, value]) => ["-o", `${name}=${value}`]);
  await run("apt-get", [...options, "update"]);
  await run("apt-get", [...options, "download", packageName], { cwd: folder });
}

async function buildRust() {
  const target = path.join(cache, "rust");
  const env = { ...process.env, RUSTFLAGS: "-C target-cpu=native", CARGO_TARGET_DIR: target };
  await run("cargo", ["build", "--release", "--locked", "--quiet"], { cwd: path.join(here, "rivals-rust"), env });
  const version = (await run("cargo", ["--version"])).trim().split(" ")[1];
  const lock = readFileSync(path.join(here, "rivals-rust/Cargo.lock"), "utf8");
  const versionOf = (name) => new RegExp(`name = "${name}"\nversion = "(.*)"`).exec(lock)?.[1];
  const crates = ["rlnc", "reed-solomon-simd", "raptorq"].map((name) => `${name} ${versionOf(name)}`);
  return {
    file: path.join(target, "release/tributary-bench-rivals"),
    note: `${crates.join(", ")}; cargo ${version}, target-cpu=native`,
  };
}

/** The same compiled code that Node runs, as one file for a Worker. */
async function bundleWorker() {
  const output = path.join(cache, "bundle");
  const compiler = webpack({
    mode: "production",
    target: "webworker",
    devtool: false,
    entry: path.join(root, "lab/bench/dist/codec/browser-worker.js"),
    output: { path: output, filename: "worker.js" },
    resolve: { symlinks: true },
  });
  const stats = await new Promise((resolve, reject) =>
    compiler.run((error, result) => (error ? reject(error) : resolve(result))),
  );
  await new Promise((resolve) => compiler.close(resolve));
  if (stats.hasErrors()) throw new Error(stats.toString({ all: false, errors: true }));
  const file = path.join(output, "worker.js");
  return {
    file,
    note: `bundled, sha256 ${createHash("sha256").update(readFileSync(file)).digest("hex").slice(0, 12)}`,
  };
}

/** Resolves to what the command printed; rejects with its last words. */
function run(command, args, options = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { ...options, stdio: ["ignore", "pipe", "pipe"] });
    let [output, errors] = ["", ""];
    child.stdout.on("data", (chunk) => (output += chunk));
    child.stderr.on("data", (chunk) => (errors += chunk));
    child.once("error", (error) => reject(new Error(`no ${command} here (${error.code})`)));
    child.once("close", (code) =>
      code === 0 ? resolve(output) : reject(new Error(errors || `${command} exited with ${code}`)),
    );
  });
}
