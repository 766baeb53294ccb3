/** Named worlds for `npm run sim`: each shows one thing that befalls links. Data only. */
import type { ProxyLink, World } from "./world";

export type Scenario = Omit<World, "seed"> & { shows: string };

const RATE = 896_000;
const CHUNK = 1_500_000;

/** `count` links alike. */
export function even(count: number, link: Partial<ProxyLink> = {}): ProxyLink[] {
  return Array.from({ length: count }, () => ({ bytesPerSec: RATE, rttMs: 50, ...link }));
}

function one(links: ProxyLink[], index: number, link: Partial<ProxyLink>): ProxyLink[] {
  return links.map((known, i) => (i === index ? { ...known, ...link } : known));
}

export const SCENARIOS: Record<string, Scenario> = {
  clean: { shows: "six equal links, no loss", chunkBytes: CHUNK, links: even(6) },
  lossy: { shows: "six equal links, 2 % loss both ways", chunkBytes: CHUNK, links: even(6, { loss: 0.02 }) },
  bursts: {
    shows: "six equal links, losses in bursts (5 % in the mean)",
    chunkBytes: CHUNK,
    links: even(6, { burst: { enter: 0.01, leave: 0.15, loss: 0.8 } }),
  },
  single: { shows: "one link", chunkBytes: CHUNK, links: even(1) },
  unequal: {
    shows: "one link of twice the rate of three others, 2 % loss",
    chunkBytes: CHUNK,
    links: [...even(1, { bytesPerSec: 2 * RATE, loss: 0.02 }), ...even(3, { loss: 0.02 })],
  },
  far: {
    shows: "four links of other rates and round trips, from 20 to 120 ms",
    chunkBytes: CHUNK,
    links: [20, 50, 80, 120].flatMap((rttMs, at) => even(1, { rttMs, bytesPerSec: at === 0 ? 2 * RATE : RATE })),
  },
  paper: { shows: "four links of 896 KB/s, as the paper's set-up", chunkBytes: CHUNK, links: even(4) },
  slows: {
    shows: "one of six falls to a tenth of its rate half-way",
    chunkBytes: CHUNK,
    links: one(even(6, { rttMs: 100 }), 0, { rateChanges: [{ atMs: 190, bytesPerSec: RATE / 10 }] }),
  },
  moves: {
    shows: "round trips of four links grow from 30 to 130 ms half-way, as in another network",
    chunkBytes: 2 * CHUNK,
    links: even(4, { rttMs: 30, rttChanges: [{ atMs: 400, rttMs: 130 }] }),
  },
  dies: {
    shows: "one of four dies half-way",
    chunkBytes: CHUNK,
    links: one(even(4, { rttMs: 100 }), 0, { outages: [{ fromMs: 262, toMs: Infinity, crash: true }] }),
  },
  returns: {
    shows: "one of two is gone for 300 ms, then back with its state",
    chunkBytes: CHUNK,
    links: one(even(2), 0, { outages: [{ fromMs: 200, toMs: 500 }] }),
  },
  reborn: {
    shows: "one of two crashes and is back after 300 ms knowing nothing",
    chunkBytes: CHUNK,
    links: one(even(2), 0, { outages: [{ fromMs: 200, toMs: 500, crash: true }] }),
  },
  downlink: {
    shows: "four links into a downlink of half their sum, queue 100 ms",
    chunkBytes: CHUNK,
    links: even(4),
    downlink: { bytesPerSec: 2 * RATE, queueBytes: 179_200 },
  },
  origin: {
    shows: "the chunk comes from an origin of four times a link's rate, 20 ms away",
    chunkBytes: CHUNK,
    links: even(6, { origin: { bytesPerSec: 4 * RATE, rttMs: 20 } }),
  },
  jitter: {
    shows: "a small chunk over links with 20 ms of jitter and 2 % loss",
    chunkBytes: 256_000,
    links: even(6, { jitterMs: 20, loss: 0.02 }),
  },
  radio: {
    shows: "four links whose packets take up to 40 ms longer each way, in order, as over radio",
    chunkBytes: 2 * CHUNK,
    links: even(4, { rttMs: 40, jitterMs: 40, inOrder: true }),
  },
  reorder: {
    shows: "5 % of packets 30 ms late, 3 % twice",
    chunkBytes: CHUNK,
    links: even(4, { reorder: { share: 0.05, extraMs: 30 }, repeat: 0.03 }),
  },
  "deaf-proxies": { shows: "every second feedback is lost", chunkBytes: CHUNK, links: even(4, { feedbackLoss: 0.5 }) },
  clocks: {
    shows: "proxies whose clocks are hours apart",
    chunkBytes: CHUNK,
    links: even(4).map((link, i) => ({ ...link, clockOffsetMs: i * 7_200_000 - 3_600_000 })),
  },
};
