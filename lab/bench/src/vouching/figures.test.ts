import { atMost, verdictOf } from "../kit/verdict";
import { roundTripsMore, shareOfMore } from "./figures";

describe("vouching: figures", () => {
  test("a turn in which both were slow changes nothing", () => {
    expect(shareOfMore([100, 1000, 100], [98, 980, 98])).toBeCloseTo(0.02);
    expect(roundTripsMore([150, 950, 160], [100, 900, 100], 50)).toBe(1);
  });

  test("less than without it is negative", () => {
    expect(shareOfMore([100], [110])).toBeCloseTo(-0.1);
  });

  test("a figure is under its aim, under its floor or over both", () => {
    const verdicts = [0.01, 0.04, 0.06].map((value) => verdictOf(atMost("share", value, [0.05, 0.02])));
    expect(verdicts).toEqual(["aim met", "met", "NOT MET"]);
    expect(verdictOf(atMost("time", 1.05, [1.1]))).toBe("met");
  });
});
