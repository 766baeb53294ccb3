import type { LiveFigures } from "../shared/runtime";
import { BUILT_IN } from "../shared/settings";
import { Rates } from "./rates";
import { bytesText, rateText, statusSentence, troubleSentence } from "./words";

function figures(atMs: number, bytes: number[], more: Partial<LiveFigures> = {}): LiveFigures {
  const proxies = bytes.map((count, index) => ({ id: `p${index}`, name: `p${index}`, state: "open", bytes: count, packets: 0, innovative: 0, duplicate: 0, rttMs: null }));
  return { atMs, origoUrl: BUILT_IN.origoUrl, mode: "coded-mutp", proxies, downloads: 0, active: 0, deliveredBytes: 0, fallbacks: 0, directBytes: 0, trouble: null, ...more };
}

describe("popup: rates of cumulative figures", () => {
  test("one reading has shares of all time and no rate", () => {
    const { streams, bytesPerSec } = new Rates().add(figures(0, [300, 100]));
    expect([streams.map(({ share }) => share), bytesPerSec]).toEqual([[0.75, 0.25], 0]);
  });

  test("two readings have the rates and shares of what came between", () => {
    const rates = new Rates();
    rates.add(figures(0, [1000, 0]));
    const { streams, bytesPerSec } = rates.add(figures(500, [1500, 1500]));
    expect(streams.map(({ bytesPerSec: rate, share }) => [rate, share])).toEqual([[1000, 0.25], [3000, 0.75]]);
    expect(bytesPerSec).toBe(4000);
  });

  test("what is older than three seconds is forgotten", () => {
    const rates = new Rates();
    rates.add(figures(0, [0]));
    for (let atMs = 500; atMs <= 6000; atMs += 500) rates.add(figures(atMs, [1000]));
    expect(rates.add(figures(6500, [1000])).bytesPerSec).toBe(0);
  });

  test("a transport that started anew gives no negative rate", () => {
    const rates = new Rates();
    rates.add(figures(0, [5000]));
    expect(rates.add(figures(500, [100])).bytesPerSec).toBe(0);
  });
});

describe("popup: words", () => {
  test.each([[0, "0 B"], [999, "999 B"], [1000, "1.00 kB"], [48_300_000, "48.3 MB"], [812_000, "812 kB"], [3.2e12, "3.20 TB"]])("%d bytes", (bytes, text) => {
    expect(bytesText(bytes)).toBe(text);
  });

  test("a rate", () => expect(rateText(896_000)).toBe("896 kB/s"));

  test("a dead Origo is named", () => {
    const trouble = { kind: "noProxies", detail: "Origo at http://127.0.0.1:7600 cannot be reached: Failed to fetch", atMs: 0 };
    expect(troubleSentence(BUILT_IN, trouble)).toBe("No proxies: Origo at http://127.0.0.1:7600 does not answer. Video plays directly.");
    expect(troubleSentence({ ...BUILT_IN, enabled: false }, trouble)).toBeNull();
    expect(troubleSentence({ ...BUILT_IN, mode: "direct" }, trouble)).toBeNull();
  });

  test("the line under the name says what is going on", () => {
    expect(statusSentence({ ...BUILT_IN, enabled: false }, null, 0)).toMatch(/^Off/);
    expect(statusSentence(BUILT_IN, null, 0)).toMatch(/^Ready/);
    expect(statusSentence(BUILT_IN, figures(0, [1], { active: 1 }), 0)).toBe("Bringing video through 1 proxy.");
    expect(statusSentence(BUILT_IN, figures(0, [1, 1]), 2)).toBe("Bringing video through 2 proxies.");
    expect(statusSentence(BUILT_IN, figures(0, [1, 1]), 0)).toBe("Ready, connected to 2 proxies.");
  });
});
