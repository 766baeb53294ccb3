import type { DownloadRecord } from "@tributary/contract/schema";
import type { Platform } from "./platform";
import { Reporter } from "./reporter";

function build() {
  const state = { status: 202, retryAfter: "", bad: "", requests: 0, stored: [] as string[] };
  const platform = {
    now: () => Date.now(),
    fetch: (_: string, init: RequestInit) => {
      state.requests++;
      if (state.status === 0) return Promise.reject(new TypeError("fetch failed"));
      const ids = Object.values(JSON.parse(init.body as string) as Record<string, { id: string }[]>)
        .flat()
        .map(({ id }) => id);
      if (ids.includes(state.bad)) return Promise.resolve(new Response("{}", { status: 400 }));
      if (state.status === 202) state.stored.push(...ids);
      return Promise.resolve(
        new Response("{}", { status: state.status, headers: { "retry-after": state.retryAfter } }),
      );
    },
  } as unknown as Platform;
  return { state, reporter: new Reporter("http://origo", platform) };
}

const record = (id: string): DownloadRecord => ({ id }) as DownloadRecord;

beforeEach(() => jest.useFakeTimers());
afterEach(() => jest.useRealTimers());

describe("reporter", () => {
  test("reporter: sends reports that come together as one batch", async () => {
    const { state, reporter } = build();
    for (const id of ["a", "b", "c"]) reporter.record(record(id));
    await jest.advanceTimersByTimeAsync(1000);
    expect(state).toMatchObject({ requests: 1, stored: ["a", "b", "c"] });
    expect(reporter.waiting).toBe(0);
  });

  test("reporter: keeps records while Origo is away and sends them when it is back", async () => {
    const { state, reporter } = build();
    state.status = 0;
    reporter.record(record("a"));
    await jest.advanceTimersByTimeAsync(20_000);
    expect(state.requests).toBeLessThan(8);
    state.status = 202;
    await jest.advanceTimersByTimeAsync(30_000);
    expect(state.stored).toEqual(["a"]);
    await reporter.close(100);
  });

  test.each([429, 503])(
    "reporter: keeps records when Origo answers %i, and comes back when Origo says",
    async (status) => {
      const { state, reporter } = build();
      Object.assign(state, { status, retryAfter: "10" });
      reporter.record(record("a"));
      await jest.advanceTimersByTimeAsync(9_000);
      expect([state.requests, reporter.waiting]).toEqual([1, 1]);
      state.status = 202;
      await jest.advanceTimersByTimeAsync(2_000);
      expect(state.stored).toEqual(["a"]);
    },
  );

  test("reporter: waits no longer than 30 s, whatever Origo says", async () => {
    const { state, reporter } = build();
    Object.assign(state, { status: 429, retryAfter: "1000000000" });
    reporter.record(record("a"));
    await jest.advanceTimersByTimeAsync(1_000);
    state.status = 202;
    await jest.advanceTimersByTimeAsync(30_000);
    expect(state.stored).toEqual(["a"]);
  });

  test("reporter: keeps at most 1000 records and drops the oldest ones", async () => {
    const { state, reporter } = build();
    state.status = 503;
    for (let i = 0; i < 1001; i++) reporter.record(record(`r${i}`));
    expect(reporter.waiting).toBe(1000);
    state.status = 202;
    await jest.advanceTimersByTimeAsync(60_000);
    expect(state.stored).toHaveLength(1000);
    expect(state.stored[0]).toBe("r1");
  });

  test("reporter: drops only the record that Origo refuses", async () => {
    const { state, reporter } = build();
    state.bad = "b";
    for (const id of ["a", "b", "c"]) reporter.record(record(id));
    await jest.advanceTimersByTimeAsync(5000);
    expect(state.stored).toEqual(["a", "c"]);
    expect(reporter.waiting).toBe(0);
  });

  test("reporter: keeps few traces, and sends one at a time", async () => {
    const { state, reporter } = build();
    state.status = 503;
    for (let i = 0; i < 20; i++) reporter.trace({ id: `t${i}`, generationCount: 1, packets: [], feedback: [] });
    expect(reporter.waiting).toBe(16);
    state.status = 202;
    await jest.advanceTimersByTimeAsync(60_000);
    expect(state.stored).toHaveLength(16);
    expect(state.requests).toBe(16);
  });

  test("reporter: close sends the waiting reports once, and then keeps nothing", async () => {
    const { state, reporter } = build();
    reporter.record(record("a"));
    await reporter.close(100);
    expect(state.stored).toEqual(["a"]);
    const gone = build();
    gone.state.status = 0;
    gone.reporter.record(record("a"));
    await gone.reporter.close(100);
    expect(gone.reporter.waiting).toBe(0);
    await jest.advanceTimersByTimeAsync(60_000);
    expect(gone.state.requests).toBe(1);
  });
});
