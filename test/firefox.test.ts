/** The extension in Firefox, where the transport is in the page's frame. Every byte is compared with the files. */
import { mediaFetchedByBrowser, segmentMismatch, startFleet } from "@tributary/lab-stack";
import { accessLog, faults, past, playPage } from "./support";

test("Firefox: the hls page plays to its end through four proxies with right bytes", async () => {
  const fleet = await startFleet({ proxyCount: 4, ports: "any" });
  try {
    const defaults = { origoUrl: fleet.origo.url, mode: "coded", connections: 4 };
    const { state, startedMs } = await playPage({
      browser: "firefox",
      url: `${fleet.sample.url}/hls.html`,
      defaults,
      playbackRate: 4,
    });
    expect(state.errors).toEqual([]);
    expect(state.ended).toBe(true);
    expect(state.segments.length).toBeGreaterThanOrEqual(26);
    expect(faults(state.segments.map((segment) => segmentMismatch(segment)))).toEqual([]);
    const direct = mediaFetchedByBrowser(await accessLog(fleet, startedMs));
    expect(direct.length).toBeLessThan(state.segments.length / 2);
  } finally {
    await fleet.stop();
  }
});

test("Firefox: the page plays on directly when all proxies are killed", async () => {
  const fleet = await startFleet({ proxyCount: 2, ports: "any", rateBytesPerSec: 300_000 });
  try {
    const defaults = { origoUrl: fleet.origo.url, mode: "coded", connections: 2 };
    const act = async (): Promise<void> => void (await Promise.all(fleet.proxies.map((proxy) => proxy.kill())));
    const { state } = await playPage({
      browser: "firefox",
      url: `${fleet.sample.url}/hls.html`,
      defaults,
      playbackRate: 4,
      during: { atSecond: 2, act },
      // The player held 10 s and whole segments.
      until: past(16),
    });
    expect(past(16)(state)).toBe(true);
    expect(faults(state.segments.map((segment) => segmentMismatch(segment)))).toEqual([]);
  } finally {
    await fleet.stop();
  }
});
