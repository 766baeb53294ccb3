/** All boxes of the video bench: over which links, in which mode, how often. Data only. */
import type { Mode } from "@tributary/client";
import type { ScenarioInput } from "@tributary/lab-links";
import { BACKBONE } from "../campaign/boxes";
import type { Congestion } from "../campaign/boxes";

export interface VideoLinks {
  id: string;
  /** One a proxy: KB/s in wire bytes (1 KB = 1,000 bytes), and the round trip to the client. */
  proxies: readonly { rateKB: number; rttMs: number }[];
  /** Loss of every link's sending direction, with the origin's. */
  lossPercent: number;
  /** Congestion control of the proxies' and the origin's TCP. */
  congestion: Congestion;
  /** One proxy after another dies every `everySec` and returns after `awaySec`. */
  kills?: { everySec: number; awaySec: number };
}

export interface VideoBox {
  id: string;
  links: VideoLinks;
  mode: Extract<Mode, "direct" | "split-http" | "coded">;
  /** Carries the packets of `coded`. `auto`: the extension chooses. */
  transport: "auto" | "webrtc";
  plays: number;
  /** Of the video. */
  seconds: number;
  /** Seconds of one play on an idle machine, with the browser's start and the records' way to Origo. */
  expectedSec: number;
}

/** The origin's own link. Mode `direct` has only this one. */
export const ORIGIN_LINK = { rateKB: 896, rttMs: 50 } as const;
const AROUND_SEC = 9;
const FULL = { plays: 20, seconds: 60 } as const;
const QUICK = { plays: 3, seconds: 45 } as const;

const equal = (count: number): VideoLinks["proxies"] =>
  Array.from({ length: count }, () => ({ rateKB: 896, rttMs: 50 }));

const LOSSY: VideoLinks = {
  id: "4x896 KB/s, RTT 50 ms, loss 1 %, bbr",
  proxies: equal(4),
  lossPercent: 1,
  congestion: "bbr",
};
const LOSSY_CUBIC: VideoLinks = { ...LOSSY, id: "4x896 KB/s, RTT 50 ms, loss 1 %, cubic", congestion: "cubic" };
const UNEQUAL: VideoLinks = {
  id: "1x1792+3x896 KB/s, RTT 20/50/80/120 ms, bbr",
  proxies: [
    { rateKB: 1792, rttMs: 20 },
    { rateKB: 896, rttMs: 50 },
    { rateKB: 896, rttMs: 80 },
    { rateKB: 896, rttMs: 120 },
  ],
  lossPercent: 0,
  congestion: "bbr",
};
const CHANGING: VideoLinks = {
  id: "4x896 KB/s, RTT 50 ms, bbr, one killed every 15 s and back 5 s later",
  proxies: equal(4),
  lossPercent: 0,
  congestion: "bbr",
  kills: { everySec: 15, awaySec: 5 },
};

/** The links that have figures to reach. */
export const START_UP_LINKS = LOSSY.id;
export const STALL_LINKS = CHANGING.id;

/** `plays` and `seconds` override those of the quick or full run. */
export function videoBoxes(quick: boolean, { plays, seconds }: { plays?: number; seconds?: number } = {}): VideoBox[] {
  const basis = quick ? QUICK : FULL;
  const times = { plays: plays ?? basis.plays, seconds: seconds ?? basis.seconds };
  const box = (links: VideoLinks, mode: VideoBox["mode"], transport: VideoBox["transport"] = "auto"): VideoBox => ({
    id: `${links.id} | ${mode}${transport === "auto" ? "" : ` over ${transport}`} | ${times.seconds} s`,
    links,
    mode,
    transport,
    ...times,
    expectedSec: times.seconds + AROUND_SEC,
  });
  const all = (links: VideoLinks): VideoBox[] =>
    (["direct", "split-http", "coded"] as const).map((mode) => box(links, mode));
  if (quick) return [LOSSY, UNEQUAL, CHANGING].flatMap(all);
  return [...all(LOSSY), box(LOSSY, "coded", "webrtc"), ...all(LOSSY_CUBIC), ...all(UNEQUAL), ...all(CHANGING)];
}

/** Origo is as far from the client as the origin. Its link has no limit. */
export function videoScenario({ proxies, lossPercent, congestion }: VideoLinks): ScenarioInput {
  const host = ({ rateKB, rttMs }: { rateKB: number; rttMs: number }): ScenarioInput["hosts"][string] => ({
    link: { delay: rttMs / 2, up: { rate: `${rateKB} KB/s`, queue: "100 ms", loss: lossPercent / 100 } },
    tcp: { congestion },
  });
  const named = Object.fromEntries(proxies.map((each, index) => [`proxy${index + 1}`, host(each)]));
  return {
    services: true,
    backbone: BACKBONE,
    hosts: { client: {}, origin: host(ORIGIN_LINK), origo: { link: { delay: ORIGIN_LINK.rttMs / 2 } }, ...named },
  };
}
