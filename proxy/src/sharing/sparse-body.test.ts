import { ByteSpans, SparseBody } from "./sparse-body";

test("byte spans: stretches that touch or overlap become one, and the gaps between them are told", () => {
  const spans = new ByteSpans();
  for (const [start, end] of [
    [10, 20],
    [30, 40],
    [0, 5],
    [20, 25],
    [50, 50],
    [4, 11],
  ])
    spans.add({ start: start!, end: end! });
  expect(spans.list).toEqual([
    { start: 0, end: 25 },
    { start: 30, end: 40 },
  ]);
  expect([spans.has(0, 25), spans.has(24, 26), spans.has(26, 26)]).toEqual([true, false, true]);
  expect(spans.gaps(20, 50)).toEqual([
    { start: 25, end: 30 },
    { start: 40, end: 50 },
  ]);
});

test("byte spans: any order of adding gives the same stretches (seeds 1 to 50)", () => {
  for (let seed = 1; seed <= 50; seed++) {
    let state = seed;
    const below = (bound: number) => (state = (state * 48271) % 2147483647) % bound;
    const spans = new ByteSpans();
    const held = new Set<number>();
    for (let count = 0; count < 30; count++) {
      const start = below(100);
      const end = start + below(10);
      spans.add({ start, end });
      for (let at = start; at < end; at++) held.add(at);
    }
    const listed = spans.list.flatMap(({ start, end }) => Array.from({ length: end - start }, (_, at) => start + at));
    expect(listed).toEqual([...held].sort((a, b) => a - b));
    const gaps = spans.gaps(0, 120).reduce((sum, { start, end }) => sum + end - start, 0);
    expect(gaps).toBe(120 - held.size);
  }
});

test("sparse body: bytes over several segments are read as they were written, and missing ones are wanted", () => {
  const wanted: unknown[] = [];
  const body = new SparseBody(200_000, (span) => wanted.push(span));
  const bytes = Uint8Array.from({ length: 150_000 }, (_, at) => at % 251);
  body.write(50_000, bytes.subarray(0, 70_000));
  body.write(120_000, bytes.subarray(70_000));
  expect(Buffer.compare(body.view(50_000, 200_000), bytes)).toBe(0);
  expect([body.has(50_000, 200_000), body.has(0, 1)]).toEqual([true, false]);
  expect(() => body.view(49_999, 50_001)).toThrow(RangeError);
  expect(() => body.write(199_999, Uint8Array.of(1, 2))).toThrow(RangeError);
  body.want(0, 10);
  expect(wanted).toEqual([{ start: 0, end: 10 }]);
});
