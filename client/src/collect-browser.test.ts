import { collectGarbage, collectWhileBusy } from "./collect-browser";

test("garbage: is collected every 2 s while packets come and when they end, but not when they begin", () => {
  const Own = globalThis.ArrayBuffer;
  const collected: number[] = [];
  let nowMs = 0;
  const packets = (fromMs: number, untilMs: number): void => {
    for (nowMs = fromMs; nowMs <= untilMs; nowMs += 100) collectWhileBusy(nowMs);
  };
  const close = (atMs: number): void => collectGarbage((nowMs = atMs));
  globalThis.ArrayBuffer = function () {
    collected.push(nowMs);
  } as unknown as ArrayBufferConstructor;
  try {
    close(5000);
    packets(10_000, 10_500);
    close(10_600);
    packets(14_000, 18_500);
    close(18_600);
    close(30_000);
    close(40_000);
  } finally {
    globalThis.ArrayBuffer = Own;
  }
  expect(collected).toEqual([10_600, 16_000, 18_000, 30_000]);
});
