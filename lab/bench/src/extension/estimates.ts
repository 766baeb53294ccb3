/**
 * Bandwidth estimates of players over proxies, each beside the same player's estimate of a direct link on which bytes
 * come at the rate at which the proxies brought them. Over emulated links: a proxy's own limit lets a burst through
 * before it holds, which for a short segment is most of it.
 */
import { setTimeout as pause } from "node:timers/promises";
import { recordsOnLinks, startLinks, type Links, type ScenarioInput } from "@tributary/lab-links";
import { findChromium } from "@tributary/lab-stack";
import { median } from "../kit/figures";
import { atMost, type Figure } from "../kit/verdict";
import { inChromium, playTo } from "./play";

interface EstimatingPlayer {
  name: string;
  page: string;
  manifest: string;
  /** In the page: bytes a second. */
  estimate: string;
}

export const PLAYERS: readonly EstimatingPlayer[] = [
  { name: "hls.js", page: "hls.html", manifest: "master.m3u8", estimate: "samplePlayer.bandwidthEstimate / 8" },
  {
    name: "dash.js",
    page: "dash.html",
    manifest: "stream.mpd",
    estimate: "samplePlayer.getAverageThroughput('video') * 1000 / 8",
  },
  {
    name: "shaka",
    page: "shaka.html",
    manifest: "stream.mpd",
    estimate: "samplePlayer.getStats().estimatedBandwidth / 8",
  },
];

const PROXIES = 4;
const RATE_BYTES_PER_SEC = 896_000;
const RTT_MS = 50;
const VIDEO_SEC = 60;
const SETTLED_SEC = 20;
/** Of an IP packet of 1,500 bytes TCP carries so many, with its timestamps. */
const TCP_PAYLOAD_SHARE = 1448 / 1500;
/** The last records' way to Origo. */
const RECORDS_MS = 1000;
const LARGE_BYTES = 500_000;

/** Servers reach each other past their links, so the origin's own link is the direct one alone. */
const LINKS: ScenarioInput = {
  services: true,
  backbone: { delay: 5 },
  hosts: {
    client: {},
    origin: linkOf(PROXIES * RATE_BYTES_PER_SEC),
    origo: { link: { delay: RTT_MS / 2 } },
    ...Object.fromEntries(
      Array.from({ length: PROXIES }, (_, index) => [`proxy${index + 1}`, linkOf(RATE_BYTES_PER_SEC)]),
    ),
  },
};

function linkOf(rate: number): ScenarioInput["hosts"][string] {
  return { link: { delay: RTT_MS / 2, up: { rate, queue: "100 ms" } } };
}

export async function estimates(player: EstimatingPlayer, runs: number): Promise<Figure[]> {
  const links = await startLinks(LINKS);
  try {
    const [errors, told]: [number[], string[]] = [[], []];
    for (let run = 0; run < runs; run++) {
      const id = `${Date.now()}`;
      const over = await estimateOf(links, player, `over-${id}`, true);
      const rate = await deliveredRate(links, `over-${id}`);
      await links.set("origin", { up: { rate: rate / TCP_PAYLOAD_SHARE } });
      const direct = await estimateOf(links, player, `direct-${id}`, false);
      errors.push(100 * (over / direct - 1));
      told.push([over, direct, rate].map((each) => (each / 1000).toFixed(0)).join("/"));
    }
    const error = median(errors);
    const note =
      `${error >= 0 ? "above" : "below"} that of a direct link (RTT ${RTT_MS} ms) of the rate that ` +
      `${PROXIES} links of ${RATE_BYTES_PER_SEC / 1000} KB/s brought from each head on; estimate, direct ` +
      `estimate, rate in KB/s: ${told.join(", ")}`;
    return [atMost(`${player.name}: bandwidth estimate, error`, Math.abs(error), [10], { unit: " %", note })];
  } finally {
    await links.close();
  }
}

/** Once the player has settled. `id` makes addresses that nobody has asked for before. */
async function estimateOf(links: Links, player: EstimatingPlayer, id: string, isOverProxies: boolean): Promise<number> {
  const { ORIGIN_URL: originUrl = "", ORIGO_URL: origoUrl = "" } = links.env;
  const chromium = findChromium();
  if (!chromium) throw new Error("no Chromium found: install it, or name its path in the variable CHROMIUM");
  const executable = await links.wrapper("client", chromium);
  // The page's digests of what it got need a secure context, which plain HTTP is on loopback alone.
  const flags = [`--unsafely-treat-insecure-origin-as-secure=${originUrl}`];
  return inChromium(
    { executable, flags, ...(isOverProxies ? { defaults: { origoUrl, mode: "coded", connections: PROXIES } } : {}) },
    async (browser) => {
      const page = await browser.newPage();
      await page.goto(`${originUrl}/${player.page}?source=/long/${id}/${VIDEO_SEC}/${player.manifest}`, {
        waitUntil: "domcontentloaded",
      });
      await playTo(page, SETTLED_SEC);
      const estimate = (await page.evaluate(player.estimate)) as number;
      await pause(RECORDS_MS);
      return estimate;
    },
  );
}

/** Bytes a second from the head on, of the downloads of video `id` that are large enough to tell. */
async function deliveredRate(links: Links, id: string): Promise<number> {
  const large = (await recordsOnLinks(links)).filter(
    ({ url, outcome, netBytes }) => url.includes(`/${id}/`) && outcome === "complete" && netBytes > LARGE_BYTES,
  );
  if (large.length === 0) throw new Error("no large segment came through the proxies");
  return median(large.map(({ netBytes, durationMs, headMs }) => (1000 * netBytes) / (durationMs - (headMs ?? 0))));
}
