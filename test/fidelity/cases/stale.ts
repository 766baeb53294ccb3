/** Names whose content changes: the origin's cache headers and the page's cache mode decide what a page gets. */
import type { OutgoingHttpHeaders } from "node:http";
import {
  bodies,
  bodyOf,
  give,
  named,
  orLead,
  pause,
  SEGMENT,
  type Exchange,
  type FidelityCase,
  type Tab,
} from "../kit";

const versionOf = (memory: Record<string, number>): number => memory["version"] ?? 1;

/** An origin whose every name has the current version's content. */
function changing(headersOf: (version: number) => OutgoingHttpHeaders): FidelityCase["answer"] {
  return (exchange: Exchange) => {
    const version = versionOf(exchange.memory);
    const headers = { ...SEGMENT, ...headersOf(version) };
    const etag = headers["etag"];
    if (etag !== undefined && exchange.request.headers["if-none-match"] === etag)
      return void exchange.response.writeHead(304, headers).end();
    give(exchange, bodyOf(`version ${version} of ${exchange.path}`), headers);
  };
}

/** Asks, changes the content, asks again after `waitMs` in every cache mode, and by XHR. */
const acrossChange =
  (waitMs: number, leads = true) =>
  async (tab: Tab): Promise<unknown> => {
    if (leads) await tab.leadInto(`${tab.away}/live`);
    const modes = ["default", "no-store", "reload", "no-cache", "xhr"];
    const urlOf = (mode: string): string => `${tab.away}/live/${modes.indexOf(mode)}.ts`;
    const ask = (mode: string) => {
      const url = urlOf(mode);
      return mode === "xhr" ? tab.xhr(url) : tab.fetch(url, mode === "default" ? {} : { cache: mode });
    };
    // The first answers go into caches, so they are asked for without a mode.
    const first = [];
    for (const mode of modes) first.push(await tab.fetch(urlOf(mode)));
    tab.memory["version"] = 2;
    await pause(waitMs);
    const second: Record<string, unknown> = {};
    for (const mode of modes) second[mode] = bodies([await ask(mode)])[0];
    return { first: bodies(first), second };
  };

const writtenAgo = (seconds: number): string => new Date(Math.floor(Date.now() / 1000 - seconds) * 1000).toUTCString();
const written: Record<number, string> = {};
/** The same time for the same version, however often it is asked. */
const modified = (version: number): string => (written[version] ??= writtenAgo(version === 1 ? 20 : 1));

const stale = (
  name: string,
  headersOf: (version: number) => OutgoingHttpHeaders,
  more?: Partial<FidelityCase>,
): FidelityCase => ({
  name: `stale/${name}`,
  answer: changing(headersOf),
  run: acrossChange(500),
  proof: "carried",
  ...more,
});

export const STALE: FidelityCase[] = [
  stale("no-headers", () => ({})),
  stale("no-headers-at-a-streams-start", () => ({}), { run: acrossChange(500, false) }),
  stale("pragma", () => ({ pragma: "no-cache" })),
  stale("no-cache", () => ({ "cache-control": "no-cache" })),
  stale("no-cache-with-etag", (version) => ({ "cache-control": "no-cache", etag: `"v${version}"` })),
  stale("no-store", () => ({ "cache-control": "no-store" })),
  stale("expired", () => ({ date: new Date().toUTCString(), expires: writtenAgo(10) })),
  stale("expires-0", () => ({ expires: "0" })),
  stale("age-over", () => ({ "cache-control": "max-age=100", age: "100" })),
  stale("etag", (version) => ({ etag: `"v${version}"` })),
  stale("file-written-lately", (version) => ({ etag: `"v${version}"`, "last-modified": modified(version) }), {
    run: acrossChange(3000),
  }),
  stale("max-age-1", () => ({ "cache-control": "max-age=1" }), { run: acrossChange(2500) }),
  stale("max-age-60", () => ({ "cache-control": "max-age=60" })),
  stale("vary-all", () => ({ vary: "*", "cache-control": "max-age=60" })),
  {
    name: "stale/ring-of-names",
    proof: "carried",
    // Three names in turn, without any header.
    answer: (exchange) => {
      const count = (exchange.memory["written"] ?? 0) + Number(exchange.path.match(/\d+/)?.[0]);
      give(exchange, bodyOf(`segment ${count}`), SEGMENT);
    },
    run: async (tab) => {
      await tab.leadInto(`${tab.away}/ring`);
      const got = [];
      for (let at = 0; at < 9; at++) {
        tab.memory["written"] = at - (at % 3);
        got.push(await tab.fetch(`${tab.away}/ring/${at % 3}.ts`));
        await pause(100);
      }
      return bodies(got);
    },
  },
  {
    name: "stale/re-encoded-between-ranges",
    proof: "carried",
    answer: orLead((exchange) => {
      const version = versionOf(exchange.memory);
      give(exchange, bodyOf(`file ${version}`, 400_000), {
        ...SEGMENT,
        "content-type": "video/mp4",
        etag: `"f${version}"`,
      });
    }),
    run: async (tab) => {
      await tab.leadInto(tab.away);
      const part = async (first: number) =>
        tab.run(`fetch("${tab.away}/film.mp4", { headers: { range: "bytes=${first}-${first + 99_999}" } })
          .then(async (answer) => [answer.status, await see.digestOf(await answer.arrayBuffer())])`);
      for (const version of [1, 2])
        for (const first of [0, 100_000])
          named(`file ${version} from ${first}`, bodyOf(`file ${version}`, 400_000).subarray(first, first + 100_000));
      const first = await part(0);
      // On a slow machine the comparison of the first part ends long after it.
      await pause(2000);
      const before = [first, await part(100_000)];
      tab.memory["version"] = 2;
      return { before, after: [await part(0), await part(100_000)] };
    },
  },
];
