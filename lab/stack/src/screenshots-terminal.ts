/**
 * The pictures of the command line for the documents. The command runs in a pseudo-terminal (`script`), and xterm.js
 * draws what it printed, in Chromium.
 */
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import type { Page } from "puppeteer-core";
import { openBrowser } from "./browser";
import { repoRoot, startFleet } from "./fleet";
import { publisherCode } from "./publisher-code";

const COLUMNS = 136;
const RATE_BYTES_PER_SEC = 896_000;
/** The last download of a picture is under way after this long. */
const UNDER_WAY_MS = 9000;
/** Commands that end by themselves have ended. */
const DONE_MS_MAX = 60_000;
/** So slow that the second film is under way then. */
const FILM_RATE = "250k";

interface Picture {
  name: string;
  rows: number;
  waitMs: number;
  /** What the reader sees as typed, and the words of the command. */
  commands: { shown: string; words: string }[];
}

function picturesOf(site: string, code: string): Picture[] {
  const film = (words: string) => ({
    shown: `get https://video.example/master.m3u8 -o ${words}`,
    words: `get ${site}/media/cmaf/master.m3u8 -o ${words}`,
  });
  const same = (words: string) => ({ shown: words, words });
  return [
    {
      name: "command-line.png",
      rows: 12,
      waitMs: UNDER_WAY_MS,
      commands: ["8000000", "80000000"].map((size) => ({
        shown: `get http://video.example/film-${size}.mp4 -O`,
        words: `get ${site}/__size/${size} -O`,
      })),
    },
    {
      name: "command-line-video.png",
      rows: 7,
      waitMs: UNDER_WAY_MS,
      commands: [film("film.mp4"), film(`small.mkv --quality 480p --limit-rate ${FILM_RATE}`)],
    },
    {
      name: "command-line-publish.png",
      rows: 25,
      waitMs: DONE_MS_MAX,
      commands: [
        {
          shown: "publish holiday.mp4 --package --code publisher-...",
          words: `publish holiday.mp4 --package --code ${code}`,
        },
        same("list"),
        same("verify holiday"),
      ],
    },
  ];
}

export async function terminalPicture(folder: string): Promise<void> {
  const fleet = await startFleet({ proxyCount: 4, ports: "any", rateBytesPerSec: RATE_BYTES_PER_SEC });
  const { browser, newPage, close } = await openBrowser({ headless: true });
  const work = mkdtempSync(path.join(os.tmpdir(), "tributary-terminal-"));
  try {
    const command = `"${process.execPath}" "${path.join(repoRoot, "client/dist/cli.js")}"`;
    makeFilm(path.join(work, "holiday.mp4"));
    for (const { name, rows, waitMs, commands } of picturesOf(fleet.sample.url, await publisherCode(fleet.origo.url))) {
      const script = commands.map(({ shown, words }) => `echo '$ tributary ${shown}'; ${command} ${words}`).join("; ");
      const home = `export TRIBUTARY_ORIGO=${fleet.origo.url} XDG_CONFIG_HOME=${work}/.config XDG_CACHE_HOME=${work}`;
      const all = await transcript(`stty cols ${COLUMNS} rows ${rows}; ${home}; ${script}`, work, waitMs);
      const user = `${os.userInfo().username}@${os.hostname()}`;
      const printed = all
        .replaceAll(fleet.origo.url, "https://origo.example")
        .replaceAll(work, "/home/ada")
        .replaceAll(user, "ada@laptop");
      await draw(await newPage(), printed, rows, path.join(folder, name));
    }
    await browser.close();
  } finally {
    await close();
    await fleet.stop();
    rmSync(work, { recursive: true, force: true });
  }
}

function makeFilm(file: string): void {
  const picture = ["-f", "lavfi", "-i", "testsrc2=size=1280x720:rate=10:duration=8"];
  execFileSync("ffmpeg", ["-v", "error", ...picture, "-c:v", "libx264", "-preset", "ultrafast", file]);
}

async function draw(page: Page, printed: string, rows: number, file: string): Promise<void> {
  const modules = path.dirname(require.resolve("@xterm/xterm/package.json"));
  await page.setContent('<body style="margin:0;background:#1e1e1e"><div id="t" style="padding:12px"></div></body>');
  await page.addStyleTag({ path: path.join(modules, "css/xterm.css") });
  await page.addScriptTag({ path: path.join(modules, "lib/xterm.js") });
  const options = { cols: COLUMNS, rows, fontSize: 14, lineHeight: 1.15, theme: { background: "#1e1e1e" } };
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

/** What the terminal got until the commands had ended, or until then. */
async function transcript(script: string, cwd: string, waitMs: number): Promise<string> {
  const child = spawn("script", ["-qfc", `bash -c ${quoted(script)}`, "/dev/null"], {
    cwd,
    stdio: ["pipe", "pipe", "inherit"],
  });
  let printed = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (printed += text));
  await Promise.race([pause(waitMs), new Promise((resolve) => child.once("close", resolve))]);
  child.kill();
  return printed.slice(0, printed.lastIndexOf("\r"));
}

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;
