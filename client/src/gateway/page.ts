/** The page of the gateway: what plays, through which proxies, and a field that makes an address the gateway's. */
import type { Express, Request, Response } from "express";
import type { LiveStats } from "../api";
import { isFailed, type Activity, type Transfer } from "./activity";
import { gatewayAddress, isHttp, shown } from "./addresses";
import { Html, markup, PAGE_POLICY, SCRIPT, STYLE } from "./page-parts";
import type { ServeServices } from "./serve";

const PLAYS_SHOWN = 8;

export function addPage(app: Express, { client, activity }: ServeServices, prefix: string): void {
  const send = (response: Response, text: Html): void => {
    response.set({
      "cache-control": "no-store",
      "content-security-policy": PAGE_POLICY,
      "cross-origin-opener-policy": "same-origin",
      "cross-origin-resource-policy": "same-origin",
      "referrer-policy": "no-referrer",
      "x-content-type-options": "nosniff",
    });
    response.type("html").send(text.text);
  };
  app.get("/", (request: Request, response: Response) => {
    const asked = typeof request.query["address"] === "string" ? request.query["address"].trim() : "";
    const gateway = `http://${request.headers.host}${prefix}`;
    send(response, page(addressPart(asked, gateway), nowPart(activity, client.live)));
  });
  app.get("/now", (_request: Request, response: Response) => send(response, nowPart(activity, client.live)));
}

function page(address: Html, now: Html): Html {
  return markup`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <title>Tributary gateway</title>
        <style>${new Html(STYLE)}</style>
      </head>
      <body>
        <main>
          <header>
            <h1>Tributary gateway</h1>
            <p>Any player plays through several proxies at once.</p>
            <p id="offline" role="status" hidden>The gateway does not answer. Is it still running?</p>
          </header>
          ${address}
          <div id="now">${now}</div>
        </main>
        <script>${new Html(SCRIPT)}</script>
      </body>
    </html>`;
}

/** The field, and what to type for the address that was asked for. */
function addressPart(asked: string, gateway: string): Html {
  return markup`<section aria-labelledby="address-title">
    <h2 id="address-title">Play an address</h2>
    <form method="get">
      <label
        >Address of a playlist (.m3u8, .mpd) or of a video file
        <input name="address" inputmode="url" autocomplete="off" spellcheck="false" required value="${asked}"
      /></label>
      <button>Show the gateway's address</button>
    </form>
    ${asked === "" ? "" : commands(asked, gateway)}
  </section>`;
}

function commands(asked: string, gateway: string): Html {
  const text = /^[a-z][a-z0-9+.-]*:\/\//i.test(asked) ? asked : `https://${asked}`;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !isHttp(url))
    return markup`<p class="fault" role="alert">This is not the address of a web server: ${shown(asked)}.</p>`;
  const address = gatewayAddress(url, gateway).replaceAll("'", "%27");
  return markup`<pre tabindex="0" aria-label="The gateway's address, and command lines">
${address}

mpv '${address}'
vlc '${address}'
ffplay '${address}'</pre>`;
}

function nowPart(activity: Activity, live: LiveStats): Html {
  return markup`${playsPart(activity)}${proxiesPart(live)}${requestsPart(activity.recent)}`;
}

function playsPart(activity: Activity): Html {
  const plays = activity.plays().slice(0, PLAYS_SHOWN);
  const rows = plays.map((play) =>
    row([
      ["Player", play.player],
      ["Video", play.root, "long"],
      ["Now", ...nowOf(play)],
      ["By proxies", sizeOf(play.proxyBytes), "number"],
      ["Direct", sizeOf(play.directBytes), "number"],
      ["Proxies", [...play.proxies].sort().join(", ") || "none yet"],
    ]),
  );
  return part("Playing", rows, "Nothing has played yet. Give a player an address of this gateway.", [
    "Player",
    "Video",
    "Now",
    "By proxies",
    "Direct",
    "Proxies",
  ]);
}

function proxiesPart({ proxies }: LiveStats): Html {
  const sum = proxies.reduce((bytes, proxy) => bytes + proxy.bytes, 0);
  const rows = [...proxies]
    .sort((a, b) => a.name.localeCompare(b.name))
    .map((proxy) =>
      row([
        ["Proxy", proxy.name],
        ["Connection", proxy.state],
        ["Share", sum === 0 ? "0 %" : `${Math.round((100 * proxy.bytes) / sum)} %`, "number"],
        ["Received", sizeOf(proxy.bytes), "number"],
        ["Round trip", proxy.rttMs === null ? "not known" : `${Math.round(proxy.rttMs)} ms`, "number"],
      ]),
    );
  return part("Proxies", rows, "No proxy has been used yet.", [
    "Proxy",
    "Connection",
    "Share",
    "Received",
    "Round trip",
  ]);
}

function requestsPart(recent: readonly Transfer[]): Html {
  const rows = recent.map((transfer) =>
    row([
      ["Request", new URL(transfer.url).pathname, "long"],
      ["Site", new URL(transfer.url).host, "long"],
      ["By", wayOf(transfer)],
      ["Status", statusOf(transfer), isFailed(transfer) ? "number fault" : "number"],
      ["Size", sizeOf(transfer.proxyBytes + transfer.directBytes), "number"],
      [
        "Time",
        transfer.endedMs === undefined ? "" : `${Math.round(transfer.endedMs - transfer.startedMs)} ms`,
        "number",
      ],
    ]),
  );
  return part("Latest requests", rows, "None.", ["Request", "Site", "By", "Status", "Size", "Time"]);
}

function nowOf({ failure, isPlaying, bytesPerSec }: ReturnType<Activity["plays"]>[number]): [string, CellKind] {
  if (failure !== undefined) return [failure, "number fault"];
  return [isPlaying ? `${sizeOf(bytesPerSec)}/s` : "ended", "number"];
}

function statusOf({ status, endedMs }: Transfer): string {
  return String(status ?? (endedMs === undefined ? "running" : "no answer"));
}

function wayOf({ way, reason, proxies, proxyBytes }: Transfer): string {
  if (way === "direct") return `direct: ${reason ?? ""}`;
  const names = proxyBytes === 0 && reason !== undefined ? "direct" : [...proxies].sort().join(", ") || "proxies";
  return reason === undefined ? names : `${names}: ${reason}`;
}

type CellKind = "number" | "number fault" | "long";
type Cell = readonly [label: string, value: string | number, kind?: CellKind];

function row(cells: readonly Cell[]): Html {
  const shownCells = cells.map(
    ([label, value, kind]) => markup`<td data-label="${label}" class="${kind ?? ""}">${value}</td>`,
  );
  return markup`<tr>
    ${shownCells}
  </tr> `;
}

function part(title: string, rows: readonly Html[], empty: string, labels: readonly string[]): Html {
  const id = title.toLowerCase().replaceAll(" ", "-");
  const numbers = new Set(["Now", "By proxies", "Direct", "Share", "Received", "Round trip", "Status", "Size", "Time"]);
  const head = labels.map(
    (label) => markup`<th scope="col" class="${numbers.has(label) ? "number" : ""}">${label}</th>`,
  );
  const table = markup`<table>
    <thead>
      <tr>
        ${head}
      </tr>
    </thead>
    <tbody>
      ${rows}
    </tbody>
  </table>`;
  return markup`<section aria-labelledby="${id}">
    <h2 id="${id}">${title}</h2>
    ${rows.length === 0 ? markup`<p>${empty}</p>` : table}
  </section>`;
}

function sizeOf(bytes: number): string {
  if (bytes < 1000) return `${Math.round(bytes)} B`;
  if (bytes < 1e6) return `${Math.round(bytes / 1000)} kB`;
  return bytes < 1e9 ? `${(bytes / 1e6).toFixed(1)} MB` : `${(bytes / 1e9).toFixed(2)} GB`;
}
