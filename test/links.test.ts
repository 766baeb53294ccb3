/**
 * Downloads over emulated links (lab/links): right bytes, and the order of the modes. A time is compared with the
 * shortest time that the links allow, because absolute times belong to benches. A busy machine only makes a download
 * worse, so one good download of a few is enough.
 */
import { linksOf, makeBox, startStack, type Box, type Sample, type Stack } from "@tributary/lab-bench";
import { loadNativeTransport } from "@tributary/native-transport";

const VISITS = { node: 1, chromium: 1, aria2: 1 };
const TRIES = 8;
const NORMALIZED_GOODPUT_MIN = 0.9;
/** The better one of the available transports. */
const transport = loadNativeTransport().native ? "webtransport" : "webrtc";

let stack: Stack | undefined;
afterEach(async () => {
  await stack?.close();
  stack = undefined;
});

const normalized = ({ netBytes, grossBytes }: Sample): number => netBytes / grossBytes;

async function visit(box: Box, number: number): Promise<Sample[]> {
  const samples = await stack!.visit(box, number);
  for (const { ok, problem } of samples)
    expect({ box: box.id, ok, problem }).toEqual({ box: box.id, ok: true, problem: undefined });
  return samples;
}

/** Makes up to `TRIES` visits until a download wastes little and takes less than `soonerThanMs`. */
async function expectGood(box: Box, soonerThanMs: number): Promise<void> {
  const samples: Sample[] = [];
  for (let number = 0; number < TRIES; number++) {
    samples.push(...(await visit(box, number)));
    if (samples.some((sample) => normalized(sample) >= NORMALIZED_GOODPUT_MIN && sample.completionMs < soonerThanMs))
      return;
  }
  throw new Error(
    `${box.id}: no download took less than ${soonerThanMs} ms with normalized goodput ${NORMALIZED_GOODPUT_MIN}: ` +
      samples.map((sample) => `${sample.completionMs.toFixed(0)} ms, ${normalized(sample).toFixed(3)}`).join("; "),
  );
}

/** Slow links, so that the processors have little to do. */
const SIX = [224, 224, 224, 224, 224, 224];
const CHUNK_BYTES = 500_000;

test.each([0, 1])(
  "links: with six links and %d %% loss, coded wastes little, split-http nothing and parallel-http most",
  async (lossPercent) => {
    const links = linksOf(SIX, { lossPercent });
    const box = (mode: Box["mode"]): Box =>
      makeBox([], VISITS, { links, mode, chunkBytes: CHUNK_BYTES, ...(mode === "coded" ? { transport } : {}) });
    const [coded, split, parallel] = [box("coded"), box("split-http"), box("parallel-http")];
    stack = await startStack(links, [coded, split, parallel]);
    const slowest = await visit(parallel, 0);
    const soonestMs = Math.min(...slowest.map(({ completionMs }) => completionMs));
    for (const candidate of [coded, split]) await expectGood(candidate, soonestMs);
    for (const sample of slowest) expect(normalized(sample)).toBeLessThan(0.4);
  },
);

test("links: when a proxy dies, coded finishes, wastes little and does not ask the origin", async () => {
  const links = linksOf(SIX, { event: { what: "cut", atMs: 200 } });
  const chunkBytes = 1_000_000;
  const coded = makeBox([], VISITS, { links, mode: "coded", transport, chunkBytes });
  stack = await startStack(links, [coded]);
  const aloneMs = chunkBytes / SIX[0]!;
  await expectGood(coded, aloneMs);
});
