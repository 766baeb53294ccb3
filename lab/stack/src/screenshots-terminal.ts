/**
 * The picture of the command line for the documents. The command runs in a pseudo-terminal (`script`), and xterm.js
 * draws what it printed, in Chromium.
 */
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { openBrowser } from "./browser";
import { repoRoot, startFleet } from "./fleet";

const COLUMNS = 126;
const ROWS = 12;
const RATE_BYTES_PER_SEC = 896_000;
/** The second download is under way after this long. */
const UNDER_WAY_MS = 9000;

export async function terminalPicture(folder: string): Promise<void> {
  const fleet = await startFleet({ proxyCount: 4, ports: "any", rateBytesPerSec: RATE_BYTES_PER_SEC });
  const { browser, newPage, close } = await openBrowser({ headless: true });
  const work = mkdtempSync(path.join(os.tmpdir(), "tributary-terminal-"));
  try {
    const script = ["8000000", "80000000"]
      .map((size) => `echo '$ tributary get http://video.example/film-${size}.mp4 -O'; tributary ${size}`)
      .join("; ");
    const command = `"${process.execPath}" "${path.join(repoRoot, "client/dist/cli.js")}" get`;
    const run = `tributary() { ${command} "${fleet.sample.url}/__size/$1" --origo ${fleet.origo.url} -O; }`;
    const printed = await transcript(`stty cols ${COLUMNS} rows ${ROWS}; ${run}; ${script}`, work);
    const page = await newPage();
    const modules = path.dirname(require.resolve("@xterm/xterm/package.json"));
    await page.setContent('<body style="margin:0;background:#1e1e1e"><div id="t" style="padding:12px"></div></body>');
    await page.addStyleTag({ path: path.join(modules, "css/xterm.css") });
    await page.addScriptTag({ path: path.join(modules, "lib/xterm.js") });
    const options = { cols: COLUMNS, rows: ROWS, fontSize: 14, theme: { background: "#1e1e1e" } };
    await page.evaluate(`new Promise((resolve) => {
      const terminal = new Terminal(${JSON.stringify(options)});
      terminal.open(document.getElementById("t"));
      terminal.write(${JSON.stringify(printed)}, resolve);
    })`);
    await pause(500);
    const size = (await page.evaluate(`(() => {
      const { width, height } = document.querySelector(".xterm-screen").getBoundingClientRect();
      return { width: Math.ceil(width) + 24, height: Math.ceil(height) + 24 };
    })()`)) as { width: number; height: number };
    await page.setViewport({ ...size, deviceScaleFactor: 2 });
    await pause(500);
    await page.screenshot({ path: path.join(folder, "command-line.png") });
    await browser.close();
  } finally {
    await close();
    await fleet.stop();
    rmSync(work, { recursive: true, force: true });
  }
}

/** What the terminal got until the second download was under way. */
async function transcript(script: string, cwd: string): Promise<string> {
  const child = spawn("script", ["-qfc", `bash -c ${quoted(script)}`, "/dev/null"], {
    cwd,
    stdio: ["pipe", "pipe", "inherit"],
  });
  let printed = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (printed += text));
  await pause(UNDER_WAY_MS);
  child.kill();
  return printed.slice(0, printed.lastIndexOf("\r"));
}

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;
