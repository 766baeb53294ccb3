/** Bodies that differ from answer to answer, validators that differ from server to server. */
import { bodyOf, digestOf, give, SEGMENT, type FidelityCase, type Tab } from "../kit";

const BYTES = 140_000;
const MARK_AT = 5_000;
const MARK_BYTES = 64;
let film: Buffer | undefined;

/** The mark's bytes are all the number of the answer. Everything else is the same in each answer. */
const marked = (path: string, answer: number): Buffer =>
  Buffer.from(bodyOf(`around the mark of ${path}`, BYTES)).fill(answer % 251, MARK_AT, MARK_AT + MARK_BYTES);

/** True if the bytes are those of one answer: the mark is one number throughout, and the rest is unchanged. */
const isOneAnswer = async (tab: Tab, url: string, path: string): Promise<unknown> => {
  const clean = Buffer.from(bodyOf(`around the mark of ${path}`, BYTES)).fill(0, MARK_AT, MARK_AT + MARK_BYTES);
  const seen = (await tab.run(`fetch("${url}").then(async (answer) => {
    const bytes = new Uint8Array(await answer.arrayBuffer());
    const mark = bytes.slice(${MARK_AT}, ${MARK_AT + MARK_BYTES});
    bytes.fill(0, ${MARK_AT}, ${MARK_AT + MARK_BYTES});
    return { status: answer.status, marks: new Set(mark).size, rest: await see.digestOf(bytes.buffer) };
  }).catch((error) => ({ error: see.errorOf(error) }))`)) as { rest?: string };
  return { ...seen, rest: seen.rest === digestOf(clean) ? "whole" : seen.rest };
};

const stream = async (tab: Tab): Promise<unknown> => {
  await tab.leadIn(tab.away);
  const seen = [];
  for (let at = 0; at < 8; at++)
    seen.push(await isOneAnswer(tab, `${tab.away}/m/segment-${at}.ts`, `/m/segment-${at}.ts`));
  return seen;
};

const count = (memory: Record<string, number>): number => (memory["answers"] = (memory["answers"] ?? 0) + 1);

export const MARKS: FidelityCase[] = [
  {
    name: "marks/in-each-answer",
    proof: "compared",
    answer: (exchange) => give(exchange, marked(exchange.path, count(exchange.memory)), SEGMENT),
    run: stream,
  },
  {
    name: "marks/under-one-etag",
    proof: "compared",
    answer: (exchange) => give(exchange, marked(exchange.path, count(exchange.memory)), { ...SEGMENT, etag: '"same"' }),
    run: stream,
  },
  {
    name: "marks/etag-per-server",
    proof: "carried",
    answer: (exchange) =>
      give(exchange, marked(exchange.path, 7), { ...SEGMENT, etag: `"server-${count(exchange.memory) % 4}"` }),
    run: stream,
  },
  {
    name: "marks/last-modified-per-server",
    proof: "carried",
    answer: (exchange) => {
      const ms = Date.UTC(2026, 0, 1) + 1000 * (count(exchange.memory) % 4);
      give(exchange, marked(exchange.path, 7), { ...SEGMENT, "last-modified": new Date(ms).toUTCString() });
    },
    run: stream,
  },
  {
    name: "marks/length-per-answer",
    proof: "compared",
    answer: (exchange) => {
      const body = marked(exchange.path, 7);
      give(exchange, Buffer.concat([body, Buffer.alloc(count(exchange.memory) % 4)]), SEGMENT);
    },
    run: async (tab) => {
      await tab.leadIn(tab.away);
      const seen = [];
      for (let at = 0; at < 8; at++) {
        const script = `fetch("${tab.away}/m/segment-${at}.ts").then(async (answer) =>
          see.digestOf((await answer.arrayBuffer()).slice(0, ${BYTES}))).catch((error) => see.errorOf(error))`;
        seen.push(await tab.run(script));
      }
      return seen;
    },
  },
  {
    name: "marks/resume-with-etag-per-server",
    long: true,
    proof: "carried",
    answer: (exchange) => {
      const headers = { ...SEGMENT, etag: `"server-${count(exchange.memory) % 4}"` };
      give(
        exchange,
        exchange.path === "/m/1.ts" ? (film ??= bodyOf("forty megabytes", 40_000_000)) : bodyOf(exchange.path),
        headers,
      );
    },
    run: async (tab) => {
      await tab.leadInto(`${tab.away}/m`);
      return tab.fetch(`${tab.away}/m/1.ts`);
    },
  },
];
