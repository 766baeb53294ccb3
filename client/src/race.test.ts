import { race, RaceError, type Runner } from "./race";

beforeEach(() => jest.useFakeTimers());
afterEach(() => {
  expect(jest.getTimerCount()).toBe(0);
  jest.useRealTimers();
});

interface Watched extends Runner<string> {
  startedAtMs: number | undefined;
  aborted: boolean;
  discarded: string[];
}

/** Makes a runner that succeeds or fails after `afterMs`. It ends on abort, unless `isDeaf`. */
function runner(afterMs: number, outcome: string | Error, isDeaf = false): Watched {
  const watched: Watched = {
    startedAtMs: undefined,
    aborted: false,
    discarded: [],
    discard: (made) => watched.discarded.push(made),
    run: (signal) => {
      watched.startedAtMs = Date.now();
      return new Promise((resolve, reject) => {
        const timer = setTimeout(() => (typeof outcome === "string" ? resolve(outcome) : reject(outcome)), afterMs);
        signal.addEventListener("abort", () => {
          watched.aborted = true;
          if (isDeaf) return;
          clearTimeout(timer);
          reject(signal.reason as Error);
        });
      });
    },
  };
  return watched;
}

const go = (runners: Watched[], signal = new AbortController().signal): Promise<string> => race(runners, 250, signal);

test("race: only the first runner starts if it succeeds within the head start", async () => {
  const runners = [runner(249, "a"), runner(10, "b")];
  const result = go(runners);
  await jest.advanceTimersByTimeAsync(249);
  expect([await result, runners[1]!.startedAtMs]).toEqual(["a", undefined]);
});

test("race: the second runner starts after the head start and may win, and the first is aborted", async () => {
  const startMs = Date.now();
  const runners = [runner(1000, "a"), runner(100, "b")];
  const result = go(runners);
  await jest.advanceTimersByTimeAsync(350);
  expect([await result, runners[1]!.startedAtMs! - startMs, runners[0]!.aborted]).toEqual(["b", 250, true]);
});

test("race: the second runner starts at once when the first fails", async () => {
  const startMs = Date.now();
  const runners = [runner(20, new Error("blocked")), runner(100, "b")];
  const result = go(runners);
  await jest.advanceTimersByTimeAsync(120);
  expect([await result, runners[1]!.startedAtMs! - startMs]).toEqual(["b", 20]);
});

test("race: discards the result of a loser that still succeeds", async () => {
  const runners = [runner(400, "late", true), runner(100, "b")];
  const result = go(runners);
  await jest.advanceTimersByTimeAsync(400);
  expect([await result, runners[0]!.discarded]).toEqual(["b", ["late"]]);
});

test("race: rejects with all reasons when all runners fail, and with a single error unchanged", async () => {
  const both = go([runner(20, new Error("no QUIC.")), runner(20, new Error("no UDP"))]).catch(
    (error: unknown) => error,
  );
  const reason = new Error("only");
  const one = go([runner(20, reason)]).catch((error: unknown) => error);
  await jest.advanceTimersByTimeAsync(40);
  expect(await both).toBeInstanceOf(RaceError);
  expect([((await both) as Error).message, await one]).toEqual(["no QUIC; no UDP", reason]);
});

test("race: the signal ends it at once, before and during the race", async () => {
  const controller = new AbortController();
  const runners = [runner(1000, "a"), runner(1000, "b")];
  const result = go(runners, controller.signal).catch((error: unknown) => (error as Error).message);
  await jest.advanceTimersByTimeAsync(300);
  controller.abort(new Error("client closed"));
  expect(await result).toBe("client closed");
  expect(runners.map(({ aborted }) => aborted)).toEqual([true, true]);
  await expect(go([runner(1, "c")], controller.signal)).rejects.toThrow("client closed");
});
