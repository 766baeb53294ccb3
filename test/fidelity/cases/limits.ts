/** Hosts that answer slowly, seldom or once, and errors. One request of the page must not become several refusals. */
import type { OutgoingHttpHeaders } from "node:http";
import {
  bodies,
  bodyOf,
  give,
  orLead,
  pause,
  refuse,
  SEGMENT,
  type Exchange,
  type FidelityCase,
  type Tab,
} from "../kit";

const SEGMENTS = 6;

const stream = async (tab: Tab, base = tab.away, gapMs = 0, query = ""): Promise<unknown> => {
  const got = [];
  for (let at = 0; at < SEGMENTS; at++) {
    got.push(await tab.fetch(`${base}/v/segment-${at}.ts${query}`));
    await pause(gapMs);
  }
  return bodies(got);
};

const led = async (tab: Tab): Promise<unknown> => {
  await tab.leadIn(tab.away);
  return stream(tab);
};

const TOKEN = "?token=viewer";
/** The page must not wait for a limit that the proxies used up. */
const QUICK_MS = 5000;

const withToken = async (tab: Tab): Promise<unknown> => {
  await tab.leadIn(tab.away);
  const startedMs = Date.now();
  const got = await stream(tab, tab.away, 0, TOKEN);
  return { got, isQuick: Date.now() - startedMs < QUICK_MS };
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

const LIMIT = 12;
const LIMIT_MS = 10_000;

/** Twelve requests within ten seconds for each key. The memory holds when each request came. */
const rateLimited =
  (keyOf: (exchange: Exchange) => string, refused: OutgoingHttpHeaders = {}, status = 429): FidelityCase["answer"] =>
  (exchange) => {
    const { memory, path } = exchange;
    const key = keyOf(exchange);
    const lately = Object.values(memory).filter((atMs, at) => {
      const isOfKey = Object.keys(memory)[at]?.startsWith(`${key} `);
      return isOfKey && Date.now() - atMs < LIMIT_MS;
    });
    if (lately.length >= LIMIT) return refuse(exchange, status, refused);
    memory[`${key} ${Object.keys(memory).length}`] = Date.now();
    give(exchange, bodyOf(path));
  };

/** Each answer tells how many requests are left. */
const announcing = (exchange: Exchange): void => {
  const { memory } = exchange;
  const left = (memory["left"] = (memory["left"] ?? LIMIT) - 1);
  if (left < 0) return refuse(exchange, 429);
  const headers = { "ratelimit-remaining": left, "access-control-expose-headers": "ratelimit-remaining" };
  give(exchange, bodyOf(exchange.path), { ...SEGMENT, ...headers });
};

/** Good for whoever holds the link, until a time that lies in its name. */
const signed = (exchange: Exchange): void => {
  if (Date.now() < Number(exchange.url.searchParams.get("expires"))) give(exchange, bodyOf(exchange.path));
  else refuse(exchange, 403);
};

/** Breaks off what it sends to proxies, after the first ones. Each answer has another ETag. */
const breakingOff = ({ request, response, path, by, memory }: Exchange): void => {
  const body = bodyOf(path, 600_000);
  const count = (memory["answers"] = (memory["answers"] ?? 0) + 1);
  const etag = { etag: `"server-${count}"`, "access-control-expose-headers": "etag" };
  if (by === "browser" || path.endsWith("-0.ts")) return give({ request, response }, body, { ...SEGMENT, ...etag });
  response.writeHead(200, { ...SEGMENT, ...etag, "content-length": body.length });
  response.write(body.subarray(0, 400_000), () => setTimeout(() => response.destroy(), 100));
};

/** Whether the answer came, and at most `slackMs` after the origin's own delay. */
const timed = (delayMs: number, slackMs: number) => async (tab: Tab) => {
  await tab.leadInto(`${tab.away}/slow`);
  const startedMs = Date.now();
  const { body, error } = await tab.fetch(`${tab.away}/slow/1.ts`);
  return { body, error, isInTime: Date.now() - startedMs < delayMs + slackMs };
};

const delayed = (delayMs: number): FidelityCase["answer"] =>
  orLead(async (exchange) => {
    await pause(delayMs);
    give(exchange, bodyOf(exchange.path));
  });

const ERRORS = [400, 401, 403, 404, 410, 416, 429, 500, 503];

export const LIMITS: FidelityCase[] = [
  { name: "limits/good-once-403", proof: "compared", answer: once(403), run: (tab) => stream(tab) },
  { name: "limits/good-once-410-later", proof: "compared", answer: once(410), run: led },
  {
    name: "limits/one-at-a-time-403",
    proof: "compared",
    answer: oneAtATime(403),
    run: (tab) => stream(tab, tab.away, 150),
  },
  { name: "limits/one-at-a-time-429-later", proof: "compared", answer: oneAtATime(429), run: led },
  {
    name: "limits/twelve-requests",
    proof: "compared",
    long: true,
    answer: rateLimited(() => "all"),
    run: (tab) => stream(tab),
  },
  { name: "limits/twelve-requests-later", proof: "compared", long: true, answer: rateLimited(() => "all"), run: led },
  {
    name: "limits/twelve-requests-later-with-503",
    proof: "compared",
    long: true,
    answer: rateLimited(() => "all", { "retry-after": "10", "access-control-expose-headers": "retry-after" }, 503),
    run: led,
  },
  { name: "limits/twelve-requests-by-address", proof: "compared", answer: rateLimited(({ by }) => by), run: led },
  {
    name: "limits/twelve-requests-by-token",
    answer: rateLimited(({ url }) => url.searchParams.get("token") ?? ""),
    run: withToken,
  },
  { name: "limits/limit-announced", answer: announcing, run: led },
  {
    name: "limits/signed-and-expired",
    answer: signed,
    run: async (tab) => {
      await tab.leadIn(tab.away);
      const got = [];
      for (const [at, aheadMs] of [30_000, 30_000, 30_000, -1, 30_000, -1].entries())
        got.push(await tab.fetch(`${tab.away}/v/segment-${at}.ts?expires=${Date.now() + aheadMs}`));
      return bodies(got);
    },
  },
  { name: "limits/proxies-broken-off-and-an-etag-per-server", answer: breakingOff, proof: "carried", run: led },
  {
    name: "limits/error-statuses",
    proof: "compared",
    answer: orLead((exchange) => refuse(exchange, Number(exchange.path.slice(3, 6)))),
    run: async (tab) => {
      await tab.leadInto(`${tab.away}/e`);
      const seen = [];
      for (const status of ERRORS) {
        seen.push(await tab.fetch(`${tab.away}/e/${status}.ts`, {}, "text"));
        seen.push(await tab.xhr(`${tab.away}/e/${status}1.ts`, { type: "text" }));
      }
      return seen;
    },
  },
  {
    name: "limits/status-204-205",
    proof: "compared",
    answer: orLead(({ response, path }) => void response.writeHead(Number(path.slice(3, 6)), SEGMENT).end()),
    run: async (tab) => {
      await tab.leadInto(`${tab.away}/e`);
      return { 204: await tab.fetch(`${tab.away}/e/204.ts`), 205: await tab.fetch(`${tab.away}/e/205.ts`) };
    },
  },
  {
    name: "limits/truncated",
    proof: "compared",
    answer: orLead(({ response, path }) => {
      response.writeHead(200, { ...SEGMENT, "content-length": 100_000 });
      response.write(bodyOf(path, 60_000), () => setTimeout(() => response.destroy(), 50));
    }),
    run: async (tab) => {
      await tab.leadInto(`${tab.away}/t`);
      const { status, error, bodyError } = await tab.fetch(`${tab.away}/t/1.ts`);
      return { status, error, bodyError };
    },
  },
  {
    name: "limits/reset",
    proof: "compared",
    answer: orLead(({ response }) => void response.destroy()),
    run: async (tab) => {
      await tab.leadInto(`${tab.away}/r`);
      return { fetch: await tab.fetch(`${tab.away}/r/1.ts`), xhr: await tab.xhr(`${tab.away}/r/2.ts`) };
    },
  },
  {
    name: "limits/error-page-with-status-200",
    proof: "compared",
    answer: orLead((exchange) =>
      give(exchange, Buffer.from("<h1>sorry</h1>"), { ...SEGMENT, "content-type": "text/html" }),
    ),
    run: async (tab) => {
      await tab.leadInto(`${tab.away}/e`);
      return tab.fetch(`${tab.away}/e/1.ts`, {}, "text");
    },
  },
  { name: "limits/first-byte-after-2-s", proof: "compared", answer: delayed(2000), run: timed(2000, 1500) },
  { name: "limits/first-byte-after-5-s", proof: "compared", answer: delayed(5000), run: timed(5000, 1500) },
  { name: "limits/first-byte-after-8-s", proof: "compared", long: true, answer: delayed(8000), run: timed(8000, 1500) },
  {
    name: "limits/xhr-timeout-over-a-slow-first-byte",
    proof: "compared",
    answer: delayed(4000),
    run: async (tab) => {
      await tab.leadInto(`${tab.away}/slow`);
      const { events, body } = await tab.xhr(`${tab.away}/slow/1.ts`, { timeout: 6500 });
      return { events, body };
    },
  },
  {
    name: "limits/slow-body",
    proof: "compared",
    answer: orLead(async ({ response, path }) => {
      const body = bodyOf(path, 80_000);
      response.writeHead(200, { ...SEGMENT, "content-length": body.length });
      for (let at = 0; at < body.length; at += 10_000) {
        response.write(body.subarray(at, at + 10_000));
        await pause(250);
      }
      response.end();
    }),
    run: async (tab) => {
      await tab.leadInto(`${tab.away}/slow`);
      return bodies([await tab.fetch(`${tab.away}/slow/1.ts`)]);
    },
  },
  {
    name: "limits/no-length",
    proof: "compared",
    answer: orLead(({ response, path }) => {
      response.writeHead(200, SEGMENT);
      response.end(bodyOf(path));
    }),
    run: async (tab) => {
      await tab.leadInto(`${tab.away}/n`);
      return { fetch: await tab.fetch(`${tab.away}/n/1.ts`), xhr: await tab.xhr(`${tab.away}/n/2.ts`) };
    },
  },
];
