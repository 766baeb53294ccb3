/**
 * Downloads over hostile paths with the product's own programs: `node test/dist/transports/adversity.js`. One proxy
 * listens on loopback. A stand-in for Origo lists it with relays in front of its UDP ports. The cases run in a process
 * of their own because the WebRTC library cannot be unloaded. Each case prints one JSON line, {"case", "ok", "detail"}.
 * The exit status is 1 if a case fails.
 */
import { createHash } from "node:crypto";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { createNodeClient } from "@tributary/client/node";
import type { DownloadRecord } from "@tributary/contract/schema";
import type { ProxyInfo, TransportOption } from "@tributary/client";
import { startFleet, type Fleet } from "@tributary/lab-stack";
import { clockOff, DAY_SEC } from "../skew";
import { Relay } from "./relay";

const BYTES = 3_000_000;
/** The proxy's rate. It makes a download long enough to disturb. */
const RATE_BYTES_PER_SEC = 2_000_000;
/** The largest payload on a path with packets of 1,200 bytes. IPv4 and UDP headers take 28 bytes. */
const SMALL_PATH_BYTES = 1200 - 28;
/** The length of a signed URL's query. It makes the request longer than a packet. */
const LONG_QUERY_BYTES = 2000;

interface Path {
  quic: Relay;
  webRtc: Relay;
  /** The stand-in for Origo lists these instead of the certificates' real hashes. */
  hashes: string[] | undefined;
  /** The number of WebRTC connections that the client asked for. */
  offers: number;
}

interface Outcome {
  record: DownloadRecord;
  isRight: boolean;
  error: string | undefined;
}

interface DownloadOptions {
  /** Called when a third of the bytes has arrived. */
  during?: () => void;
  /** Appended to the URL. */
  query?: string;
  /** Default `auto`. */
  transport?: TransportOption;
}

/** Downloads with a new client. */
type Download = (options?: DownloadOptions) => Promise<Outcome>;

type Case = (path: Path, download: Download) => Promise<string>;

function need(condition: boolean, what: string): void {
  if (!condition) throw new Error(what);
}

function told({ record }: Outcome): string {
  const [proxy] = record.proxies;
  return [
    proxy?.transport ?? "no transport",
    `fallback ${record.fallback?.kind ?? "none"}`,
    `${record.netBytes} of ${record.grossBytes} bytes`,
    `${Math.round(record.durationMs)} ms`,
  ].join(", ");
}

function carriedBy(outcome: Outcome, transport: string): string {
  need(
    outcome.isRight && outcome.record.fallback === null,
    `the download is incomplete or wrong: ${told(outcome)}; ${outcome.error}`,
  );
  need(outcome.record.proxies[0]?.transport === transport, `expected ${transport}: ${told(outcome)}`);
  return told(outcome);
}

const CASES: Record<string, Case> = {
  "a good path: WebTransport is used": async (_path, download) => carriedBy(await download(), "webtransport"),

  "QUIC alone is blocked: WebRTC is used": async (path, download) => {
    path.quic.isDead = true;
    return carriedBy(await download(), "webrtc");
  },

  "the proxy has another certificate than Origo lists: WebRTC is used": async (path, download) => {
    path.hashes = ["0".repeat(64)];
    return carriedBy(await download(), "webrtc");
  },

  "all datagrams are blocked: HTTP is used, and the record says so": async (path, download) => {
    path.quic.isDead = path.webRtc.isDead = true;
    const outcome = await download();
    need(outcome.isRight && outcome.record.fallback?.kind === "noTransport", told(outcome));
    return told(outcome);
  },

  "packets above 1,200 bytes are blocked: WebRTC is used": async (path, download) => {
    path.quic.bytesMax = path.webRtc.bytesMax = SMALL_PATH_BYTES;
    return carriedBy(await download(), "webrtc");
  },

  "packets above 1,200 bytes are blocked and the URL is long: WebRTC is used": async (path, download) => {
    path.quic.bytesMax = path.webRtc.bytesMax = SMALL_PATH_BYTES;
    return carriedBy(await download({ query: `?${"a".repeat(LONG_QUERY_BYTES)}` }), "webrtc");
  },

  "the client's address changes during a download: the session continues": async (path, download) =>
    carriedBy(await download({ during: () => path.quic.moveClients() }), "webtransport"),

  "the client's address changes during a download over WebRTC: the session continues": async (path, download) => {
    const detail = carriedBy(
      await download({ transport: "webrtc", during: () => path.webRtc.moveClients() }),
      "webrtc",
    );
    need(path.offers === 1, `the client made ${path.offers} connections, expected 1: ${detail}`);
    return detail;
  },

  "QUIC's path dies during a download: WebRTC takes over and keeps the received bytes": async (path, download) => {
    const outcome = await download({ during: () => (path.quic.isDead = true) });
    const detail = carriedBy(outcome, "webrtc");
    need(outcome.record.grossBytes < 1.5 * BYTES, `received bytes were fetched again: ${detail}`);
    return detail;
  },
};

/** Seconds that the proxy's clock is ahead of all others. */
const CLOCKS: Record<string, number> = {
  "the proxy's clock is a day ahead: WebTransport and WebRTC both work": DAY_SEC,
  "the proxy's clock is a day behind: WebTransport and WebRTC both work": -DAY_SEC,
};

const byEach: Case = async (_path, download) => {
  const byName = async (transport: "webtransport" | "webrtc"): Promise<string> =>
    carriedBy(await download({ transport }), transport);
  return `${await byName("webtransport")}; ${await byName("webrtc")}`;
};

const CANDIDATE = /^(a=candidate:.* 127\.0\.0\.1 )(\d+)/;

/** Replaces the proxy's port by the relay's in the candidates of the proxy's answer. */
function rerouted(answer: string, relay: Relay): string {
  const { sdp, ...rest } = JSON.parse(answer) as { sdp?: string };
  const lines = sdp?.split("\r\n").filter((line) => !line.startsWith("a=candidate:") || CANDIDATE.test(line));
  relay.targetPort = Number(lines?.map((line) => CANDIDATE.exec(line)?.[2]).find((port) => port !== undefined) ?? 0);
  return JSON.stringify({
    ...rest,
    sdp: lines?.map((line) => line.replace(CANDIDATE, `$1${relay.port}`)).join("\r\n"),
  });
}

/** Removes the candidates from the client's offer, so that the proxy can reach the client only through the relay. */
function withoutCandidates(offer: string): string {
  const { sdp, ...rest } = JSON.parse(offer) as { sdp: string };
  return JSON.stringify({
    ...rest,
    sdp: sdp
      .split("\r\n")
      .filter((line) => !line.startsWith("a=candidate:"))
      .join("\r\n"),
  });
}

/** Stands in for Origo and the proxy's HTTP. It lists the proxy behind our relays and forwards other requests to it. */
function standIn(fleet: Fleet, path: Path): http.Server {
  const proxyUrl = fleet.proxies[0]!.url;
  const list = async (): Promise<string> => {
    const { proxies, ...rest } = (await (await fetch(`${fleet.origo.url}/v1/proxies?count=1`)).json()) as {
      proxies: ProxyInfo[];
    };
    const { webTransport, ...proxy } = proxies[0]!;
    const quic = webTransport && {
      url: webTransport.url.replace(/:\d+\//, `:${path.quic.port}/`),
      certificateHashes: path.hashes ?? webTransport.certificateHashes,
    };
    return JSON.stringify({
      ...rest,
      proxies: [
        {
          ...proxy,
          url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
          ...(quic && { webTransport: quic }),
        },
      ],
    });
  };
  const server = http.createServer((request, response) => {
    if (request.url!.startsWith("/v1/proxies")) return void list().then((text) => response.end(text));
    // The stand-in changes the offer's length.
    const headers = Object.fromEntries(Object.entries(request.headers).filter(([name]) => name !== "content-length"));
    const onward = http.request(`${proxyUrl}${request.url!}`, { method: request.method, headers }, (answer) => {
      if (request.url !== "/v1/sessions")
        return void answer.pipe(response.writeHead(answer.statusCode!, answer.headers));
      void text(answer).then((body) =>
        response.writeHead(answer.statusCode!, { "content-type": "application/json" }).end(rerouted(body, path.webRtc)),
      );
    });
    onward.on("error", () => response.destroy());
    if (request.url !== "/v1/sessions") return void request.pipe(onward);
    path.offers++;
    void text(request).then((offer) => onward.end(withoutCandidates(offer)));
  });
  return server;
}

/** Runs cases against one proxy whose clock is ahead by `offSec` seconds. */
class Bench {
  readonly #fleet: Fleet;
  readonly #quicPort: number;
  readonly #sha256: string;

  private constructor(fleet: Fleet, quicPort: number, sha256: string) {
    this.#fleet = fleet;
    this.#quicPort = quicPort;
    this.#sha256 = sha256;
  }

  static async open(offSec: number): Promise<Bench> {
    const fleet = await startFleet({
      proxyCount: 1,
      ports: "any",
      rateBytesPerSec: RATE_BYTES_PER_SEC,
      ...(offSec === 0 ? {} : { proxyEnv: () => clockOff(offSec) }),
    });
    try {
      const aheadSec =
        (Date.parse((await fetch(`${fleet.proxies[0]!.url}/healthz`)).headers.get("date")!) - Date.now()) / 1000;
      need(Math.abs(aheadSec - offSec) < 60, `the proxy's clock is ${aheadSec} s ahead, expected ${offSec}`);
      const body = Buffer.from(await (await fetch(`${fleet.sample.url}/__size/${BYTES}`)).arrayBuffer());
      const { proxies } = (await (await fetch(`${fleet.origo.url}/v1/proxies?count=1`)).json()) as {
        proxies: ProxyInfo[];
      };
      const quicPort = Number(new URL(proxies[0]!.webTransport?.url ?? "https://none:9").port);
      return new Bench(fleet, quicPort, createHash("sha256").update(body).digest("hex"));
    } catch (error) {
      await fleet.stop();
      throw error;
    }
  }

  close(): Promise<void> {
    return this.#fleet.stop();
  }

  async run(test: Case): Promise<string> {
    const path: Path = {
      quic: await Relay.to(this.#quicPort),
      webRtc: await Relay.to(0),
      hashes: undefined,
      offers: 0,
    };
    const server = standIn(this.#fleet, path);
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    try {
      return await test(path, (options = {}) =>
        this.#download(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, options),
      );
    } finally {
      server.close();
      server.closeAllConnections();
      path.quic.close();
      path.webRtc.close();
    }
  }

  async #download(origoUrl: string, { during, transport = "auto", query = "" }: DownloadOptions): Promise<Outcome> {
    const client = createNodeClient({ origoUrl, reportRecords: false, transport });
    const { body, record } = client.get(`${this.#fleet.sample.url}/__size/${BYTES}${query}`, {
      mode: "coded",
      connections: 1,
    });
    const hash = createHash("sha256");
    let [bytes, isPast, error] = [0, false, undefined as string | undefined];
    try {
      for await (const piece of body as unknown as AsyncIterable<Uint8Array>) {
        hash.update(piece);
        bytes += piece.length;
        if (bytes > BYTES / 3 && !isPast) during?.();
        isPast ||= bytes > BYTES / 3;
      }
    } catch (failure) {
      error = String(failure);
    }
    const outcome = { record: await record, isRight: bytes === BYTES && hash.digest("hex") === this.#sha256, error };
    await client.close();
    return outcome;
  }
}

async function runAll(offSec: number, cases: Record<string, Case>): Promise<number> {
  const bench = await Bench.open(offSec);
  let failed = 0;
  try {
    for (const [title, test] of Object.entries(cases)) {
      const outcome = await bench.run(test).then(
        (detail) => ({ ok: true, detail }),
        (error: Error) => ({ ok: false, detail: error.message }),
      );
      if (!outcome.ok) failed++;
      process.stdout.write(`${JSON.stringify({ case: title, ...outcome })}\n`);
    }
  } finally {
    await bench.close();
  }
  return failed;
}

async function main(): Promise<number> {
  let failed = await runAll(0, CASES);
  for (const [title, offSec] of Object.entries(CLOCKS)) failed += await runAll(offSec, { [title]: byEach });
  return failed === 0 ? 0 : 1;
}

if (require.main === module) {
  main().then(
    (status) => process.exit(status),
    (error: Error) => {
      process.stderr.write(`${error.message}\n`);
      process.exit(2);
    },
  );
}
