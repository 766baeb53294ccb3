/** Hosts that answer slowly, seldom or once, and errors. One request of the page must not become several refusals. */
import { bodies, bodyOf, give, pause, refuse, SEGMENT, type Exchange, type FidelityCase, type Tab } from "../kit";

const SEGMENTS = 6;

const stream = async (tab: Tab, base = tab.away, gapMs = 0): Promise<unknown> => {
  const got = [];
  for (let at = 0; at < SEGMENTS; at++) {
    got.push(await tab.fetch(`${base}/v/segment-${at}.ts`));
    await pause(gapMs);
  }
  return bodies(got);
};

const led = async (tab: Tab): Promise<unknown> => {
  await tab.leadIn(tab.away);
  return stream(tab);
};

/** Answers each address once, and refuses it then. */
const once =
  (status: number): FidelityCase["answer"] =>
  (exchange) => {
    const times = (exchange.memory[exchange.path] = (exchange.memory[exchange.path] ?? 0) + 1);
    if (times > 1) refuse(exchange, status);
    else give(exchange, bodyOf(exchange.path));
  };

/** One open answer at a time. */
const oneAtATime =
  (status: number): FidelityCase["answer"] =>
  async (exchange) => {
    const { memory, response } = exchange;
    if ((memory["open"] ?? 0) >= 1) return refuse(exchange, status);
    memory["open"] = 1;
    response.on("close", () => (memory["open"] = 0));
    await pause(60);
    give(exchange, bodyOf(exchange.path));
  };

const rateLimited = (exchange: Exchange): void => {
  const { memory } = exchange;
  memory["asked"] = (memory["asked"] ?? 0) + 1;
  if (memory["asked"] > 12) refuse(exchange, 429, { "retry-after": "10" });
  else give(exchange, bodyOf(exchange.path));
};

/** Whether the answer came, and at most `slackMs` after the origin's own delay. */
const timed = (delayMs: number, slackMs: number) => async (tab: Tab) => {
  await tab.leadIn(tab.away);
  const startedMs = Date.now();
  const { body, error } = await tab.fetch(`${tab.away}/slow/segment.ts`);
  return { body, error, isInTime: Date.now() - startedMs < delayMs + slackMs };
};

const delayed =
  (delayMs: number): FidelityCase["answer"] =>
  async (exchange) => {
    await pause(delayMs);
    give(exchange, bodyOf(exchange.path));
  };

const ERRORS = [400, 401, 403, 404, 410, 416, 429, 500, 503];

export const LIMITS: FidelityCase[] = [
  { name: "limits/good-once-403", answer: once(403), run: (tab) => stream(tab) },
  { name: "limits/good-once-410-later", answer: once(410), run: led },
  { name: "limits/one-at-a-time-403", answer: oneAtATime(403), run: (tab) => stream(tab, tab.away, 150) },
  { name: "limits/one-at-a-time-429-later", answer: oneAtATime(429), run: led },
  { name: "limits/twelve-requests", answer: rateLimited, run: (tab) => stream(tab) },
  { name: "limits/twelve-requests-later", answer: rateLimited, run: led },
  {
    name: "limits/error-statuses",
    answer: (exchange) => refuse(exchange, Number(exchange.path.slice(3, 6))),
    run: async (tab) => {
      await tab.leadIn(tab.away);
      const seen = [];
      for (const status of ERRORS) {
        seen.push(await tab.fetch(`${tab.away}/e/${status}.ts`, {}, "text"));
        seen.push(await tab.xhr(`${tab.away}/e/${status}b.ts`, { type: "text" }));
      }
      return seen;
    },
  },
  {
    name: "limits/status-204-205",
    answer: ({ response, path }) => void response.writeHead(Number(path.slice(3, 6)), SEGMENT).end(),
    run: async (tab) => ({
      204: await tab.fetch(`${tab.away}/e/204.ts`),
      205: await tab.fetch(`${tab.away}/e/205.ts`),
    }),
  },
  {
    name: "limits/truncated",
    answer: ({ response, path }) => {
      response.writeHead(200, { ...SEGMENT, "content-length": 100_000 });
      response.write(bodyOf(path, 60_000), () => setTimeout(() => response.destroy(), 50));
    },
    run: async (tab) => {
      await tab.leadIn(tab.away);
      const { status, error, bodyError } = await tab.fetch(`${tab.away}/t/segment.ts`);
      return { status, error, bodyError };
    },
  },
  {
    name: "limits/reset",
    answer: ({ response }) => void response.destroy(),
    run: async (tab) => {
      await tab.leadIn(tab.away);
      return { fetch: await tab.fetch(`${tab.away}/r/a.ts`), xhr: await tab.xhr(`${tab.away}/r/b.ts`) };
    },
  },
  {
    name: "limits/error-page-with-status-200",
    answer: (exchange) => give(exchange, Buffer.from("<h1>sorry</h1>"), { ...SEGMENT, "content-type": "text/html" }),
    run: (tab) => tab.fetch(`${tab.away}/e/a.ts`, {}, "text"),
  },
  { name: "limits/first-byte-after-2-s", answer: delayed(2000), run: timed(2000, 1500) },
  { name: "limits/first-byte-after-5-s", answer: delayed(5000), run: timed(5000, 1500) },
  { name: "limits/first-byte-after-8-s", long: true, answer: delayed(8000), run: timed(8000, 1500) },
  {
    name: "limits/xhr-timeout-over-a-slow-first-byte",
    answer: delayed(4000),
    run: async (tab) => {
      await tab.leadIn(tab.away);
      const { events, body } = await tab.xhr(`${tab.away}/slow/a.ts`, { timeout: 6500 });
      return { events, body };
    },
  },
  {
    name: "limits/slow-body",
    answer: async ({ response, path }) => {
      const body = bodyOf(path, 80_000);
      response.writeHead(200, { ...SEGMENT, "content-length": body.length });
      for (let at = 0; at < body.length; at += 10_000) {
        response.write(body.subarray(at, at + 10_000));
        await pause(250);
      }
      response.end();
    },
    run: async (tab) => {
      await tab.leadIn(tab.away);
      return bodies([await tab.fetch(`${tab.away}/slow/a.ts`)]);
    },
  },
  {
    name: "limits/no-length",
    answer: ({ response, path }) => {
      response.writeHead(200, SEGMENT);
      response.end(bodyOf(path));
    },
    run: async (tab) => {
      await tab.leadIn(tab.away);
      return { fetch: await tab.fetch(`${tab.away}/n/a.ts`), xhr: await tab.xhr(`${tab.away}/n/b.ts`) };
    },
  },
];
