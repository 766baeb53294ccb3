/** Named worlds for `npm run sim`. Each shows one behaviour of links. Data only. */
import type { ProxyLink, World } from "./world";

type Scenario = Omit<World, "seed"> & { shows: string };

const RATE = 896_000;
const CHUNK = 1_500_000;

/** `count` equal links. */
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
    shows: "six equal links, losses in bursts (5 % on average)",
    chunkBytes: CHUNK,
    links: even(6, { burst: { enter: 0.01, leave: 0.15, loss: 0.8 } }),
  },
  single: { shows: "one link", chunkBytes: CHUNK, links: even(1) },
  unequal: {
    shows: "one link at twice the rate of three others, 2 % loss",
    chunkBytes: CHUNK,
    links: [...even(1, { bytesPerSec: 2 * RATE, loss: 0.02 }), ...even(3, { loss: 0.02 })],
  },
  far: {
    shows: "four links with different rates and round trips from 20 to 120 ms",
    chunkBytes: CHUNK,
    links: [20, 50, 80, 120].flatMap((rttMs, at) => even(1, { rttMs, bytesPerSec: at === 0 ? 2 * RATE : RATE })),
  },
  paper: { shows: "four links of 896 KB/s, as in the paper", chunkBytes: CHUNK, links: even(4) },
  slows: {
    shows: "one of six links falls to a tenth of its rate half-way",
    chunkBytes: CHUNK,
    links: one(even(6, { rttMs: 100 }), 0, { rateChanges: [{ atMs: 190, bytesPerSec: RATE / 10 }] }),
  },
  moves: {
    shows: "round trips of four links grow from 30 to 130 ms half-way, as after a change of network",
    chunkBytes: 2 * CHUNK,
    links: even(4, { rttMs: 30, rttChanges: [{ atMs: 400, rttMs: 130 }] }),
  },
  dies: {
    shows: "one of four proxies dies half-way",
    chunkBytes: CHUNK,
    links: one(even(4, { rttMs: 100 }), 0, { outages: [{ fromMs: 262, toMs: Infinity, crash: true }] }),
  },
  returns: {
    shows: "one of two proxies is unreachable for 300 ms and keeps its state",
    chunkBytes: CHUNK,
    links: one(even(2), 0, { outages: [{ fromMs: 200, toMs: 500 }] }),
  },
  reborn: {
    shows: "one of two proxies crashes and comes back after 300 ms without its state",
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
    shows: "the chunk comes from an origin with four times a link's rate and a round trip of 20 ms",
    chunkBytes: CHUNK,
    links: even(6, { origin: { bytesPerSec: 4 * RATE, rttMs: 20 } }),
  },
  jitter: {
    shows: "a small chunk over links with 20 ms of jitter and 2 % loss",
    chunkBytes: 256_000,
    links: even(6, { jitterMs: 20, loss: 0.02 }),
  },
  radio: {
    shows: "four links whose packets are up to 40 ms late in each direction but stay in order, as over radio",
    chunkBytes: 2 * CHUNK,
    links: even(4, { rttMs: 40, jitterMs: 40, inOrder: true }),
  },
  reorder: {
    shows: "5 % of packets come 30 ms late, 3 % come twice",
    chunkBytes: CHUNK,
    links: even(4, { reorder: { share: 0.05, extraMs: 30 }, repeat: 0.03 }),
  },
  "deaf-proxies": { shows: "half of the feedback is lost", chunkBytes: CHUNK, links: even(4, { feedbackLoss: 0.5 }) },
  clocks: {
    shows: "proxies whose clocks are hours apart",
    chunkBytes: CHUNK,
    links: even(4).map((link, i) => ({ ...link, clockOffsetMs: i * 7_200_000 - 3_600_000 })),
  },
};
