/**
 * `npm run links -- SCENARIO.yaml -- COMMAND ...`: brings the hosts up, runs COMMAND on the client and takes everything
 * down. The exit status is that of COMMAND, 2 for a wrong command line or scenario, or 1 if this machine lacks
 * something.
 */
import { readFileSync } from "node:fs";
import path from "node:path";
import type { ChildProcess } from "node:child_process";
import os from "node:os";
import { runCheck } from "./check";
import { LinksError } from "./core";
import { startLinks } from "./links";
import type { Links } from "./links";
import { parseScenarioText, ScenarioError } from "./scenario";

const USAGE = `usage:
       npm run links -- SCENARIO.yaml [--logs FOLDER] [--stats] -- COMMAND ...   runs COMMAND on the client
       npm run links -- SCENARIO.yaml [--logs FOLDER] [--stats] --shell          opens a shell on the client
       npm run links -- --check [--quick] [--json FILE]                          measures the emulator's accuracy

COMMAND always finds HOST_CLIENT, HOST_PROXY1 and so on in its environment. It also finds ORIGIN_URL, ORIGO_URL and
PROXY_URLS if the scenario has services. The hosts' names are in /etc/hosts. --stats prints the counters of all links as
JSON on standard error at the end. --logs keeps the output of the services. Scenarios are in lab/links/scenarios, and
docs/use/researcher.md describes their format.`;

interface Request {
  file: string;
  logFolder: string | undefined;
  stats: boolean;
  command: string[];
}

function parseRequest(args: readonly string[]): Request | undefined {
  const end = args.indexOf("--");
  const options = end < 0 ? [...args] : args.slice(0, end);
  const request: Request = {
    file: "",
    logFolder: undefined,
    stats: false,
    command: end < 0 ? [] : args.slice(end + 1),
  };
  while (options.length > 0) {
    const option = options.shift()!;
    if (option === "--shell" && end < 0) request.command = [process.env["SHELL"] || "/bin/sh"];
    else if (option === "--stats") request.stats = true;
    else if (option === "--logs") request.logFolder = options.shift();
    else if (!option.startsWith("-") && request.file === "") request.file = option;
    else return undefined;
  }
  return request.file !== "" && request.command.length > 0 ? request : undefined;
}

/** Paths are relative to the person's folder. npm itself runs scripts in the repository's root. */
const here = process.env["INIT_CWD"] ?? process.cwd();

async function runRequest(request: Request): Promise<number> {
  const scenario = parseScenarioText(readFileSync(path.resolve(here, request.file), "utf8"), request.file);
  const links = await startLinks(
    scenario,
    request.logFolder === undefined ? {} : { logFolder: path.resolve(here, request.logFolder) },
  );
  try {
    await links.begin();
    const status = await runCommand(links, request.command);
    if (request.stats) process.stderr.write(`${JSON.stringify(await links.stats())}\n`);
    return status;
  } finally {
    await links.close();
  }
}

async function runCommand(links: Links, command: readonly string[]): Promise<number> {
  const child = links.run("client", command, { stdio: "inherit", cwd: here });
  const forget = passSignals(child);
  try {
    return await new Promise((resolve, reject) => {
      child.once("error", reject);
      child.once("exit", (code, signal) => resolve(code ?? 128 + (signal ? os.constants.signals[signal] : 0)));
    });
  } finally {
    forget();
  }
}

/** A terminal sends SIGINT to the command itself. This process passes every other signal on. */
function passSignals(child: ChildProcess): () => void {
  const handlers = (["SIGINT", "SIGTERM", "SIGHUP"] as const).map((signal) => {
    const handler = (): void => void (signal === "SIGINT" && process.stdin.isTTY ? undefined : child.kill(signal));
    process.on(signal, handler);
    return () => process.off(signal, handler);
  });
  return () => handlers.forEach((off) => off());
}

async function main(args: readonly string[]): Promise<number> {
  if (args[0] === "--check") return runCheck(args.slice(1), here);
  const request = parseRequest(args);
  if (!request) {
    console.error(`${USAGE}\ngot: ${args.join(" ") || "nothing"}`);
    return 2;
  }
  try {
    return await runRequest(request);
  } catch (error) {
    if (
      !(error instanceof LinksError) &&
      !(error instanceof ScenarioError) &&
      (error as NodeJS.ErrnoException).code !== "ENOENT"
    )
      throw error;
    console.error(`links: ${(error as Error).message}`);
    return error instanceof LinksError ? 1 : 2;
  }
}

void main(process.argv.slice(2)).then((status) => process.exit(status));
