/**
 * The pictures of the command line for the documents. The command runs in a pseudo-terminal (`script`), and xterm.js
 * draws what it printed, in Chromium.
 */
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import type { Page } from "puppeteer-core";
import { openBrowser } from "./browser";
import { repoRoot, startFleet } from "./fleet";

const COLUMNS = 136;
const RATE_BYTES_PER_SEC = 896_000;
/** The last download of each picture is under way after this long. */
const UNDER_WAY_MS = 9000;
/** So slow that the second film is under way then. */
const FILM_RATE = "250k";

interface Picture {
  name: string;
  rows: number;
  /** What the reader sees as typed, and the words after `get`. */
  commands: { shown: string; words: string }[];
}

function picturesOf(site: string): Picture[] {
  const film = (words: string) => ({
    shown: `https://video.example/master.m3u8 -o ${words}`,
    words: `${site}/media/cmaf/master.m3u8 -o ${words}`,
  });
  return [
    {
      name: "command-line.png",
      rows: 12,
      commands: ["8000000", "80000000"].map((size) => ({
        shown: `http://video.example/film-${size}.mp4 -O`,
        words: `${site}/__size/${size} -O`,
      })),
    },
    {
      name: "command-line-video.png",
      rows: 7,
      commands: [film("film.mp4"), film(`small.mkv --quality 480p --limit-rate ${FILM_RATE}`)],
    },
  ];
}

export async function terminalPicture(folder: string): Promise<void> {
  const fleet = await startFleet({ proxyCount: 4, ports: "any", rateBytesPerSec: RATE_BYTES_PER_SEC });
  const { browser, newPage, close } = await openBrowser({ headless: true });
  const work = mkdtempSync(path.join(os.tmpdir(), "tributary-terminal-"));
  try {
    const command = `"${process.execPath}" "${path.join(repoRoot, "client/dist/cli.js")}" get`;
    for (const { name, rows, commands } of picturesOf(fleet.sample.url)) {
      const script = commands
        .map(({ shown, words }) => `echo '$ tributary get ${shown}'; ${command} --origo ${fleet.origo.url} ${words}`)
        .join("; ");
      const printed = await transcript(`stty cols ${COLUMNS} rows ${rows}; ${script}`, work);
      await draw(await newPage(), printed, rows, path.join(folder, name));
    }
    await browser.close();
  } finally {
    await close();
    await fleet.stop();
    rmSync(work, { recursive: true, force: true });
  }
}

async function draw(page: Page, printed: string, rows: number, file: string): Promise<void> {
  const modules = path.dirname(require.resolve("@xterm/xterm/package.json"));
  await page.setContent('<body style="margin:0;background:#1e1e1e"><div id="t" style="padding:12px"></div></body>');
  await page.addStyleTag({ path: path.join(modules, "css/xterm.css") });
  await page.addScriptTag({ path: path.join(modules, "lib/xterm.js") });
  const options = { cols: COLUMNS, rows, fontSize: 14, theme: { background: "#1e1e1e" } };
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
  await page.screenshot({ path: file as `${string}.png` });
}

/** What the terminal got until the last download was under way. */
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
