/** What is believed of what proxies say over HTTP (protocol.md §9.8). The test decides when a proxy speaks. */
import { LIMITS, TIMING } from "@tributary/protocol";
import type { ActiveDownload } from "../active-download";
import { HttpAgreement } from "./http-agreement";

const PROXIES = [0, 1, 2, 3].map((index) => ({ id: `${index}`, name: `p${index}`, url: `http://p${index}` }));
const BLOCKS = 2;
const TOTAL_BYTES = BLOCKS * LIMITS.httpBlockBytes;
const digestOf = (name: number): Uint8Array => new Uint8Array(LIMITS.digestBytes).fill(name);

let agreement: HttpAgreement;
afterEach(() => agreement.stop());

function start() {
  const speak = new Map<string, (response: Response) => void>();
  const events: string[] = [];
  const clock = { ms: 0 };
  const platform = {
    fetch: (url: string) => new Promise<Response>((resolve) => speak.set(new URL(url).hostname, resolve)),
    hash: () => digestOf(1),
  };
  const asked = { url: "http://origin/", cache: "default" };
  const tally = { addBytes: () => undefined };
  const download = { platform, asked, tally, elapsedMs: () => clock.ms } as unknown as ActiveDownload;
  agreement = new HttpAgreement(download, PROXIES, undefined, "name", {
    onPlan: ({ head }) => events.push(`plan ${head.totalBytes}`),
    onKnown: () => undefined,
    onProxyFailed: (index, { kind }) => events.push(`${index} ${kind}`),
    onUndecided: ({ kind }) => events.push(kind),
  });
  const settle = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 5));
  const say = async (index: number, totalBytes: number, digests: number[] = []): Promise<void> => {
    const headers = { "server-timing": "origin;dur=1.5", "x-origin-content-length": String(totalBytes) };
    speak.get(`p${index}`)!(new Response(Buffer.concat(digests.map(digestOf)), { headers }));
    await settle();
  };
  /** As a mode does when it has the bytes of the block. */
  const isKnown = async (block: number): Promise<boolean> => {
    agreement.isKnown(block);
    await settle();
    return agreement.isKnown(block);
  };
  return { events, clock, say, isKnown };
}

test("http agreement: the last block waits for proxies that may still contradict the length", async () => {
  const { events, say, isKnown } = start();
  for (const index of [0, 1]) await say(index, TOTAL_BYTES, [1, 1]);
  expect([events, await isKnown(0), await isKnown(1)]).toEqual([[`plan ${TOTAL_BYTES}`], true, false]);
  await say(2, TOTAL_BYTES, [1]);
  expect(await isKnown(1)).toBe(true);
});

test("http agreement: two that say otherwise outvote the first two", async () => {
  const { events, say, isKnown } = start();
  for (const index of [0, 1]) await say(index, TOTAL_BYTES, [1, 1]);
  await say(2, 3 * TOTAL_BYTES);
  expect(await isKnown(1)).toBe(false);
  await say(3, 3 * TOTAL_BYTES);
  expect(events).toEqual([`plan ${TOTAL_BYTES}`, "2 planMismatch", "3 planMismatch", "planMismatch"]);
});

test("http agreement: the last block waits no longer than the time for confirmations", async () => {
  const { clock, say, isKnown } = start();
  for (const index of [0, 1]) await say(index, TOTAL_BYTES, [1, 1]);
  expect(await isKnown(1)).toBe(false);
  clock.ms = TIMING.confirmMs;
  expect(await isKnown(1)).toBe(false);
  await say(2, TOTAL_BYTES);
  expect(await isKnown(1)).toBe(true);
});

test("http agreement: an empty body counts when a third proxy agrees", async () => {
  const { events, say } = start();
  for (const index of [0, 1]) await say(index, 0);
  expect(events).toEqual([]);
  await say(2, 0);
  expect(events).toEqual(["plan 0"]);
});

test("http agreement: a proxy convicted before it announced digests contradicts the decided ones", async () => {
  const { events, say, isKnown } = start();
  for (const index of [0, 1]) await say(index, TOTAL_BYTES, [9, 9]);
  expect(await isKnown(0)).toBe(true);
  agreement.fail(2, { kind: "bodyDiffers", message: "false bytes" });
  expect(events).toEqual([`plan ${TOTAL_BYTES}`, "2 bodyDiffers"]);
  await say(3, TOTAL_BYTES, [1, 1]);
  expect(events.slice(2)).toEqual(["3 bodyDiffers", "bodyDiffers"]);
});
