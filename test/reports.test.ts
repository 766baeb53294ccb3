/**
 * Reports: what a site learns of violations of its policies (CSP, COEP). A page with the extension must cause the same
 * events and reports as without it.
 */
import { readFileSync } from "node:fs";
import http from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { isByBrowser, openBrowser, repoRoot, startFleet, type BrowserName, type Fleet } from "@tributary/lab-stack";
import type { Page } from "puppeteer-core";
import { eventually } from "./support";

const FILM = readFileSync(path.join(repoRoot, "lab/stack/sample/media/progressive.mp4"));
const SEGMENT = Buffer.alloc(50_000, 7);
const SEGMENTS = 3;
const TRUSTED_TYPES = "require-trusted-types-for 'script'; trusted-types 'none'";
const SCRIPTS = "script-src 'unsafe-inline'; img-src * data:";
/** From the end of what a page does by itself until its reports are counted. */
const SETTLED_MS = 1500;

/** A document that plays a film and asks for segments, in a frame and for some also on its own. */
interface Case {
  policies?: Record<string, string>;
  /** Its `<meta>` policy. */
  meta?: string;
  /** The frame's attributes. */
  frame?: string;
  /** The document first shows its own page in a frame, where it has no policies. */
  isShownAgain?: boolean;
}

/** `home` is the page's host and `media` that of its files. */
const casesOf = (home: string, media: string): Record<string, Case> => {
  const csp = (policy: string): Case => ({ policies: { "content-security-policy": policy } });
  const embedder = (policy: string): Case => ({
    policies: { "cross-origin-embedder-policy": `${policy}; report-to="to"` },
  });
  const only = (policy: string): Case => ({ policies: { "content-security-policy-report-only": policy } });
  return {
    "connect-src 'self'": csp("connect-src 'self'"),
    "connect-src with the media's host": csp(`connect-src 'self' ${media}`),
    "media-src without blob:": csp(`media-src ${media}`),
    "media-src with blob:": csp(`media-src ${media} blob:`),
    "connect-src in a page that shows itself again": { ...csp("connect-src 'self'"), isShownAgain: true },
    "default-src 'none'": csp(`default-src 'none'; ${SCRIPTS}`),
    "two policies": csp(`connect-src *, connect-src ${home}`),
    "report-only connect-src": only("connect-src 'self'"),
    "report-only default-src": only(`default-src 'none'; ${SCRIPTS}`),
    "meta connect-src": { meta: "connect-src 'self'" },
    "meta media-src": { meta: `media-src ${media}` },
    "sandboxed frame": { ...csp("connect-src 'self'"), frame: `sandbox="allow-scripts"` },
    "sandboxed frame of its origin": {
      ...csp(`media-src ${media}`),
      frame: `sandbox="allow-scripts allow-same-origin"`,
    },
    sandbox: csp("sandbox allow-scripts; connect-src 'self'"),
    "what the extension itself places": csp("frame-src 'none'; webrtc 'block'; style-src 'none'; worker-src 'none'"),
    "embedder and permissions": {
      policies: {
        "cross-origin-embedder-policy-report-only": 'require-corp; report-to="to"',
        "permissions-policy": "camera=(), microphone=(), unload=()",
      },
    },
    "embedder policy, film not shared": embedder("require-corp"),
    "embedder policy, film shared": embedder("require-corp"),
    "embedder policy without credentials": embedder("credentialless"),
    "trusted types": csp(TRUSTED_TYPES),
    "report-only trusted types": only(TRUSTED_TYPES),
    strict: {
      policies: {
        ...csp(`default-src 'none'; ${SCRIPTS}; connect-src ${media}; media-src ${media} blob:; ${TRUSTED_TYPES}`)
          .policies,
        ...embedder("require-corp").policies,
        "cross-origin-opener-policy": 'same-origin; report-to="to"',
      },
    },
  };
};

/** Cases whose document is also opened as a page. */
const PAGES = ["report-only connect-src", "media-src without blob:", "strict"];

/** Tells the top page each violation. Meanwhile it loads a film and asks for segments, by fetch and by XHR. */
const scriptOf = (name: string, media: string, isShownAgain: boolean): string => `
  const send = (data) => top.postMessage({ name: ${JSON.stringify(name)}, ...data }, "*");
  const tell = (...words) => send({ seen: words.join(" ") });
  document.addEventListener("securitypolicyviolation", ({ effectiveDirective, blockedURI }) =>
    tell(effectiveDirective, blockedURI));
  try {
    new ReportingObserver((reports) => {
      for (const { type, body } of reports)
        if (/^coep|^permissions/.test(type)) tell(type, body.blockedURL ?? body.featureId);
    }, { buffered: true }).observe();
  } catch {}
  addEventListener("load", async () => {
    if (${isShownAgain}) {
      const frame = Object.assign(document.createElement("iframe"), { src: location.href });
      await new Promise((done) => { frame.onload = done; document.body.append(frame); });
    }
    const video = Object.assign(document.createElement("video"), { muted: true, preload: "auto" });
    const loaded = new Promise((done) => { video.onloadeddata = video.onerror = done; });
    video.src = "${media}/film/film.mp4?${encodeURIComponent(name)}";
    document.body.append(video);
    for (let at = 0; at < ${SEGMENTS}; at++) {
      await fetch("${media}/fetched/" + at + ".ts").then((answer) => answer.arrayBuffer()).catch(() => undefined);
      await new Promise((done) => {
        const xhr = new XMLHttpRequest();
        xhr.open("GET", "${media}/asked/" + at + ".ts");
        xhr.responseType = "arraybuffer";
        xhr.onloadend = done;
        xhr.send();
      });
    }
    await loaded;
    send({ isDone: true });
  });`;

const COLLECT = `
  window.seen = [];
  window.done = [];
  addEventListener("message", ({ data: { name, seen, isDone } }) => {
    if (seen !== undefined) window.seen.push(name + ": " + seen);
    if (isDone) window.done.push(name);
  });`;

interface Site {
  url: string;
  media: string;
  cases: Record<string, Case>;
  /** What came, each with the name of its case. */
  reports: string[];
  /** How many requests of proxies the media's host has had. */
  proxied: number;
  close(): void;
}

async function startSite(): Promise<Site> {
  const [home, media] = [http.createServer(), http.createServer()];
  for (const server of [home, media]) await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const urlOf = (server: http.Server): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const site: Site = {
    url: urlOf(home),
    media: urlOf(media),
    cases: casesOf(urlOf(home), urlOf(media)),
    reports: [],
    proxied: 0,
    close: () => {
      for (const server of [home, media]) server.close().closeAllConnections();
    },
  };
  media.on("request", (request: http.IncomingMessage, response: http.ServerResponse) => {
    if (!isByBrowser({ userAgent: request.headers["user-agent"] ?? "" })) site.proxied += 1;
    giveMedia(request, response);
  });
  home.on("request", (request: http.IncomingMessage, response: http.ServerResponse) => {
    const { pathname, searchParams } = new URL(request.url ?? "/", site.url);
    const name = searchParams.get("case") ?? "";
    if (pathname === "/report") {
      const pieces: Buffer[] = [];
      request.on("data", (piece: Buffer) => pieces.push(piece));
      request.on("end", () => {
        site.reports.push(...reportsOf(Buffer.concat(pieces).toString()).map((report) => `${name}: ${report}`));
        response.writeHead(204).end();
      });
      return;
    }
    if (pathname === "/all") response.writeHead(200, { "content-type": "text/html" }).end(pageOfAll(site.cases));
    // The browser names the page that shows itself.
    else if (request.headers.referer === site.url + request.url) giveEmpty(response);
    else giveDocument(response, name, site.cases[name] ?? {}, site.media);
  });
  return site;
}

function giveMedia(request: http.IncomingMessage, response: http.ServerResponse): void {
  const isFilm = (request.url ?? "").startsWith("/film/");
  const body = isFilm ? FILM : SEGMENT;
  const headers = {
    "access-control-allow-origin": "*",
    "content-type": isFilm ? "video/mp4" : "video/mp2t",
    etag: '"1"',
    ...(/not%20shared/.test(request.url ?? "") ? {} : { "cross-origin-resource-policy": "cross-origin" }),
  };
  const [, from, to] = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? "") ?? [];
  if (from === undefined) return void response.writeHead(200, { ...headers, "content-length": body.length }).end(body);
  const [start, last] = [Number(from), Math.min(Number(to || Infinity), body.length - 1)];
  response.writeHead(206, {
    ...headers,
    "accept-ranges": "bytes",
    "content-range": `bytes ${start}-${last}/${body.length}`,
    "content-length": last - start + 1,
  });
  response.end(body.subarray(start, last + 1));
}

const addressOf = (name: string): string => `/document?case=${encodeURIComponent(name)}`;

function pageOfAll(cases: Record<string, Case>): string {
  const frames = Object.entries(cases).map(
    ([name, { frame = "" }]) => `<iframe ${frame} src="${addressOf(name)}"></iframe>`,
  );
  return `<!doctype html><title>all</title><script>${COLLECT}</script><body>${frames.join("\n")}`;
}

function giveEmpty(response: http.ServerResponse): void {
  response.writeHead(200, { "content-type": "text/html" }).end(`<!doctype html><title>again</title>`);
}

function giveDocument(response: http.ServerResponse, name: string, each: Case, media: string): void {
  const to = `/report?case=${encodeURIComponent(name)}`;
  const headers: http.OutgoingHttpHeaders = { "content-type": "text/html", "reporting-endpoints": `to="${to}"` };
  for (const [header, policy] of Object.entries(each.policies ?? {}))
    headers[header] = /^content/.test(header)
      ? policy.split(", ").flatMap((one) => [`${one}; report-uri ${to}`, `${one}; report-to to`])
      : policy;
  const meta = each.meta === undefined ? "" : `<meta http-equiv="Content-Security-Policy" content="${each.meta}">`;
  const head = `<title>${name}</title><link rel="icon" href="data:,">`;
  response.writeHead(200, headers);
  const script = COLLECT + scriptOf(name, media, each.isShownAgain === true);
  response.end(`<!doctype html>${meta}${head}<script>${script}</script><body>`);
}

/** Each report in a body, of `report-uri` or of the Reporting API. */
function reportsOf(text: string): string[] {
  const told = JSON.parse(text) as unknown;
  return (Array.isArray(told) ? told : [told]).map((one: Record<string, Record<string, unknown>>) => {
    const body = one["csp-report"] ?? one.body ?? {};
    const directive = body["effective-directive"] ?? body["violated-directive"] ?? body.effectiveDirective ?? one.type;
    return `${String(directive)} ${String(body["blocked-uri"] ?? body.blockedURL ?? "")}`;
  });
}

let fleet: Fleet;
let site: Site;
beforeAll(async () => {
  site = await startSite();
  fleet = await startFleet({ proxyCount: 2, ports: "any", allow: [new URL(site.url).host, new URL(site.media).host] });
});
afterAll(async () => {
  await fleet.stop();
  site.close();
});

const defaultsOf = ({ origo }: Fleet) => ({ origoUrl: origo.url, mode: "coded", connections: 2 });

interface Violations {
  /** What the documents heard, each once. */
  heard: string[];
  /** The same of the reports that no document heard of. */
  unheard: string[];
}

async function violations(name: BrowserName, isWith: boolean): Promise<Violations> {
  const open = await openBrowser({
    name,
    headless: true,
    flags: ["--short-reporting-delay"],
    ...(isWith ? { defaults: defaultsOf(fleet) } : {}),
  });
  site.reports = [];
  try {
    const page = await open.newPage();
    if (isWith) await untilPlain(page);
    if (isWith) expect(await isCarried(page, "strict")).toBe(true);
    const seen = await heardIn(page, `${site.url}/all`, Object.keys(site.cases));
    for (const each of PAGES) seen.push(...(await heardIn(page, site.url + addressOf(each), [each])));
    expect(site.reports.length).toBeGreaterThan(0);
    const heard = readable(seen);
    return { heard, unheard: readable(site.reports).filter((report) => !heard.includes(report)) };
  } finally {
    await open.close();
  }
}

async function heardIn(page: Page, url: string, names: readonly string[]): Promise<string[]> {
  await page.goto(url);
  const done = await eventually(
    () => page.evaluate("window.done") as Promise<string[]>,
    (each) => each.length === names.length,
    90,
  );
  expect([...done].sort()).toEqual([...names].sort());
  await pause(SETTLED_MS);
  return (await page.evaluate("window.seen")) as string[];
}

/** Whether the proxies ask for what the page asks for, once its answers were compared. */
async function isCarried(page: Page, name: string): Promise<boolean> {
  await page.goto(site.url + addressOf(name));
  site.proxied = 0;
  let number = 0;
  const ask = (): Promise<unknown> =>
    page.evaluate(`fetch("${site.media}/more/${number++}.ts").then((answer) => answer.arrayBuffer()).then(() => 0)`);
  const isAsked = async (): Promise<boolean> => {
    await ask();
    return site.proxied > 1;
  };
  return eventually(isAsked, Boolean, 20);
}

const readable = (texts: readonly string[]): string[] =>
  [...new Set(texts)].map((text) => text.replaceAll(site.url, "HOME").replaceAll(site.media, "MEDIA")).sort();

/** A page without a policy is carried, and so is its film. */
async function untilPlain(page: Page): Promise<void> {
  const isHeld = `document.querySelector("video")?.getAttribute("src")?.startsWith("blob:") === true`;
  const look = async (): Promise<unknown> => {
    await page.goto(`${site.url}/document?case=none`);
    return eventually(() => page.evaluate(isHeld), Boolean, 10);
  };
  expect(await eventually(look, Boolean, 40)).toBe(true);
}

test.each<BrowserName>(["chromium", "firefox"])(
  "%s: a site gets the same reports of violations with the extension as without it",
  async (name) => {
    const without = await violations(name, false);
    expect(await violations(name, true)).toEqual(without);
  },
);
