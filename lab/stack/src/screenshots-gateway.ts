/** The picture of the gateway's page for the documents, while mpv and ffmpeg play through it. */
import { spawn, type ChildProcess } from "node:child_process";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { openBrowser } from "./browser";
import { repoRoot, startFleet } from "./fleet";

const WIDTH = 1080;
const HEIGHT = 720;
const RATE_BYTES_PER_SEC = 896_000;
const PLAY_MS = 9000;

export async function gatewayPicture(folder: string): Promise<void> {
  const fleet = await startFleet({ proxyCount: 4, ports: "any", rateBytesPerSec: RATE_BYTES_PER_SEC });
  const { browser, newPage, close } = await openBrowser({ headless: true });
  const children: ChildProcess[] = [];
  const start = (program: string, ...words: string[]): ChildProcess => {
    const child = spawn(program, words, { stdio: ["ignore", "pipe", "ignore"] });
    children.push(child);
    return child;
  };
  try {
    const cli = path.join(repoRoot, "client/dist/cli.js");
    const gateway = await addressOf(start(process.execPath, cli, "gateway", "--port", "0", "--origo", fleet.origo.url));
    const mirrored = (file: string): string => `${gateway}/http/${new URL(fleet.sample.url).host}/${file}`;
    start("mpv", "--no-config", "--really-quiet", "--vo=null", "--ao=null", mirrored("long/film/600/master.m3u8"));
    start("ffmpeg", "-v", "error", "-re", "-i", mirrored("live/master.m3u8"), "-c", "copy", "-f", "null", "-");
    await pause(PLAY_MS);
    const page = await newPage();
    await page.setViewport({ width: WIDTH, height: HEIGHT, deviceScaleFactor: 2 });
    await page.goto(`${gateway}/`);
    await page.screenshot({ path: path.join(folder, "gateway.png") });
    await browser.close();
  } finally {
    for (const child of children) child.kill();
    await close();
    await fleet.stop();
  }
}

function addressOf(gateway: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    gateway.stdout!.on("data", (text: Buffer) => {
      const address = /The gateway is (\S+)\/ /.exec(text.toString())?.[1];
      if (address !== undefined) resolve(address);
    });
    gateway.once("close", (code) => reject(new Error(`the gateway ended with ${code}`)));
  });
}
