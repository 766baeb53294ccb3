/** The load generator beside a real proxy: every byte of every viewer is compared. */
import { allowedCores } from "../kit/machine";
import { startStack, type StackOptions } from "./stack";
import type { Look } from "./generator";
import { GROUP_BYTES } from "./content";

const EVERY_MS = 100;
const VIEWERS = 8;
const onLinux = process.platform === "linux" ? test : test.skip;

onLinux.each<[string, Pick<StackOptions, "transport" | "mode" | "proxyEnv">]>([
  ["WebTransport, shared symbols", { transport: "webtransport", mode: "coded-mutp" }],
  ["WebTransport, coded anew", { transport: "webtransport", mode: "coded-mutp", proxyEnv: { CODES_ANEW: "1" } }],
  [
    "WebRTC, two coders",
    { transport: "webrtc", mode: "coded-mutp", proxyEnv: { TRIBUTARY_CODER: "both", TRIBUTARY_GPU: "stand-in" } },
  ],
])(
  "capacity: viewers of one channel get its bytes over %s",
  async (_, setting) => {
    const cores = { proxy: allowedCores().join(","), generator: allowedCores().join(",") };
    const stack = await startStack({ ...setting, cores, channels: 1, zipf: 0.5, verifyEvery: 1, seed: 1 });
    try {
      const seen: Look[] = [];
      const sum = (of: (look: Look) => number): number => seen.reduce((all, look) => all + of(look), 0);
      while (sum((look) => look.completeMs.length) < VIEWERS) {
        // On a busy machine a viewer may give up. Another one then comes.
        await stack.tell({ kind: "grow", viewers: VIEWERS, perSec: 1000 });
        seen.push(await stack.look());
        await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
      }
      expect(sum((look) => look.verifiedBytes)).toBeGreaterThanOrEqual(VIEWERS * GROUP_BYTES);
      expect(sum((look) => look.wrongGroups)).toBe(0);
    } finally {
      await stack.stop();
    }
  },
  60_000,
);
