/**
 * `npm run bench -- NAME [options]`: sets up what the bench needs, then runs it. Each bench is a program in
 * src/NAME/bench.ts that reads its own options; `origo` is in origo/.
 *
 * Exit status: 0 measured (a figure below its floor is a result, not a failure), 1 could not measure, 2 bad option.
 */
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { boundWords, endWithNpm } from "../../infra/lifetime.mjs";
import { root, runMain, setUp, SetupError } from "../../infra/setup.mjs";

const BUILD = path.join(root, "lab/bench/build");

/** `needs` is set up first. `uses` is set up too, but the bench runs without it. */
const BENCHES = {
  protocol: {},
  campaign: { needs: { compiler: true }, uses: [{ browser: true }, { tools: [{ name: "aria2", command: "aria2c" }] }] },
  transport: { needs: { compiler: true }, uses: [{ browser: true }] },
  video: { needs: { compiler: true, browser: true } },
  film: { needs: { compiler: true, tools: ["yt-dlp", "ffmpeg"].map((name) => ({ name, command: name })) } },
  gateway: { needs: { compiler: true, tools: [{ name: "ffmpeg", command: "ffmpeg" }] } },
  profile: {},
  memory: {},
  library: {
    needs: {
      tools: [
        { name: "nginx-light", command: "nginx" },
        { name: "util-linux", command: "taskset" },
      ],
    },
  },
  vouching: { needs: { compiler: true } },
  spread: { needs: { compiler: true } },
  capacity: { needs: { tools: [{ name: "util-linux", command: "taskset" }] } },
  extension: { needs: { browser: true }, prepare: buildStandIn },
  codec: { needs: { compiler: true }, uses: [{ browser: true }], prepare: prepareCodec },
  gpu: { needs: { compiler: true } },
  origo: {},
};

/** The extension's package with a stand-in for its transport. */
function buildStandIn() {
  const webpack = path.join(root, "node_modules/webpack/bin/webpack.js");
  const config = path.join(root, "extension/test-browser/webpack.config.js");
  const built = spawnSync(process.execPath, [webpack, "--config", config, "--mode", "production"], { cwd: root });
  if (built.status !== 0) throw new SetupError(`the stand-in extension could not be built: ${built.stdout}`);
}

async function prepareCodec() {
  const { prepareContenders } = await import("./codec/setup.mjs");
  const tools = await prepareContenders(console.log);
  mkdirSync(BUILD, { recursive: true });
  writeFileSync(path.join(BUILD, "tools.json"), JSON.stringify(tools));
}

async function setUpIfPossible(wanted) {
  await setUp({ ...wanted, print: () => undefined }).catch((error) => {
    if (!(error instanceof SetupError)) throw error;
    console.log(`bench: ${error.message}`);
  });
}

/** Passes signals on, so that the program can stop well. A terminal sends SIGINT to the program itself. */
function runProgram(file, args) {
  const words = [...boundWords, file, ...args];
  const child = spawn(process.execPath, words, { stdio: ["inherit", "inherit", "inherit", "pipe"] });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"])
    process.on(signal, () => void (signal === "SIGINT" && process.stdin.isTTY ? undefined : child.kill(signal)));
  return new Promise((resolve) => child.once("exit", (code) => resolve(code ?? 1)));
}

async function main() {
  const [name, ...args] = process.argv.slice(2);
  const bench = Object.hasOwn(BENCHES, name ?? "") ? BENCHES[name] : undefined;
  if (!bench) {
    const names = Object.keys(BENCHES).join(", ");
    console.error(`usage: npm run bench -- NAME [options], NAME one of ${names}; got ${name ?? "nothing"}`);
    return 2;
  }
  endWithNpm();
  const measures = !["--list", "--report", "--help"].some((option) => args.includes(option));
  await setUp({ ...(measures ? bench.needs : {}), print: () => undefined });
  if (measures) {
    for (const wanted of bench.uses ?? []) await setUpIfPossible(wanted);
    await bench.prepare?.();
  }
  return runProgram(path.join(root, "lab/bench", name === "origo" ? "origo/bench.mjs" : `dist/${name}/bench.js`), args);
}

await runMain(main);
