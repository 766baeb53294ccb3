import { HEDGE_MS_MORE, HEDGE_MS_UNKNOWN, Pace, SLOW_MS } from "./pace";

test("pace: the site is asked, too, after twice the usual time or a little more than it", () => {
  const pace = new Pace();
  expect(pace.hedgeMs("p")).toBe(HEDGE_MS_UNKNOWN);
  for (const [usualMs, hedgeMs] of [
    [10, 500],
    [300, 600],
    [1500, 1500 + HEDGE_MS_MORE],
  ] as const) {
    pace.forget("p");
    pace.note("p", usualMs);
    expect(pace.hedgeMs("p")).toBe(hedgeMs);
  }
});

test("pace: one late answer does not make a host slow, several do", () => {
  const pace = new Pace();
  pace.note("p", 100);
  pace.note("p", 5000);
  expect([pace.isSlow("p"), pace.isSlow("q")]).toEqual([false, false]);
  pace.note("p", 5000);
  expect([pace.isSlow("p"), 5000 > SLOW_MS]).toEqual([true, true]);
});
