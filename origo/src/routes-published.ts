/**
 * Published: what is published, for players of every web page (docs/spec/publications.md §3). Origo answers playlists
 * and the page with the player itself, and sends players to holders for other files. What publishers made runs no
 * scripts here: playlists come with a policy that forbids all, and nothing else of theirs comes from this origin.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Response } from "express";
import { isPlaylist, PublicationResponse } from "@tributary/contract/publication-schema";
import type { FleetProxy } from "@tributary/contract/schema";
import { endpoint, notFound, Refusal, type Call, type Endpoint } from "./http";
import { limitKeyOf } from "./network";
import type { Publications, Published } from "./publications";
import { RateLimit } from "./rate-limit";
import { ListQuery, proxiesFor, tokenFor, type FleetOptions } from "./routes-fleet";
import type { PublicationStore } from "./store/publication-store";

const WINDOW_MS = 10_000;
const ADDRESSES_MAX = 50_000;
/** A new revision is seen after this time. */
const SHARED_SEC = 10;

export interface PublishedOptions extends FleetOptions {
  publications: Publications;
  publicationStore: PublicationStore;
  dashboardDir: string;
}

/** Nothing that a publisher made may run as a page of Origo. */
const INERT = "default-src 'none'; sandbox; frame-ancestors 'none'";
/** The page with the player: its own script, and media of any proxy. */
const PLAYER =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; worker-src 'self' blob:; " +
  "connect-src http: https:; media-src http: https: blob:; base-uri 'none'; form-action 'none'; frame-ancestors *";

export function publishedEndpoints(options: PublishedOptions): Endpoint[] {
  const views = new RateLimit({
    limit: () => options.configuration.value("origo.viewsPerAddress"),
    windowMs: () => WINDOW_MS,
    keysMax: ADDRESSES_MAX,
  });
  const count = ({ request }: Call): void => {
    const [key, nowMs] = [limitKeyOf(request.ip ?? ""), options.nowMs()];
    const seconds = Math.ceil(views.waitMs(key, nowMs) / 1000);
    views.add(key, nowMs);
    if (seconds === 0) return;
    const message = `this address asks for too many published files: wait ${seconds} s`;
    throw new Refusal(429, { kind: "tooManyAttempts", message }, { "Retry-After": String(seconds) });
  };
  return [
    publicationEndpoint(options),
    endpoint({
      method: "get",
      path: "/v/:key/:name",
      access: "web",
      summary: "Get a page that plays a publication",
      answer: "text/html",
      handle: async (call) => {
        count(call as Call);
        await page(call as Call, options);
      },
    }),
    endpoint({
      method: "get",
      path: "/v/:key/:name/*path",
      access: "web",
      summary: "Get a published file: a playlist, or the address of a proxy that has the file",
      answer: "application/octet-stream",
      handle: async (call) => {
        count(call as Call);
        await serve(call as Call, options);
      },
    }),
  ];
}

const publicationEndpoint = (options: PublishedOptions): Endpoint =>
  endpoint({
    method: "get",
    path: "/v1/publications/:key/:name",
    access: "web",
    summary: "Get the signed manifest of a publication, and live proxies, those that hold it first",
    query: ListQuery,
    answer: PublicationResponse,
    handle: async (call) => {
      const published = await find(call.params, options);
      const holders = new Set(options.publications.holdersOf(published));
      const listed = proxiesFor(call, options, holders);
      return {
        ...listed,
        manifest: published.manifest,
        holders: listed.proxies.filter(({ id }) => holders.has(id)).length,
      } satisfies PublicationResponse;
    },
  });

async function find(params: Record<string, unknown>, { publications }: PublishedOptions): Promise<Published> {
  const [key, name] = [String(params["key"]), String(params["name"])];
  const published = await publications.released({ key, name });
  if (published === undefined) throw notFound(`the publisher ${key} has published nothing as ${name}`);
  return published;
}

/** The page is the same for all publications: its script looks at its own address, and says if nothing is there. */
async function page({ params, request, response }: Call, options: PublishedOptions): Promise<void> {
  if (!request.path.endsWith("/")) return response.redirect(308, `${encodeURIComponent(params["name"] ?? "")}/`);
  const html = await readFile(join(options.dashboardDir, "player.html"), "utf8").catch(() => {
    throw new Refusal(503, { kind: "unavailable", message: "the page with the player is not built" });
  });
  const publication = { key: params["key"] ?? "", name: params["name"] ?? "" };
  const isThere = (await options.publications.released(publication)) !== undefined;
  response.set({ "Content-Security-Policy": PLAYER, "Cross-Origin-Opener-Policy": "unsafe-none" });
  response.removeHeader("X-Frame-Options");
  response
    .status(isThere ? 200 : 404)
    .type("text/html")
    .send(html);
}

async function serve(call: Call, options: PublishedOptions): Promise<void> {
  const { params, request, response } = call;
  const path = (params["path"] as unknown as string[]).join("/");
  const published = await find(params, options);
  const file = request.path.endsWith("/") ? undefined : published.files.get(path);
  if (file === undefined) throw notFound(`${params["name"]} has no file ${path}`);
  if (isPlaylist(path)) return sendPlaylist(response, path, file.object, options);
  const holder = options.publications.holderOf(published, file.object);
  if (holder === undefined) {
    const message = `no live proxy holds ${path} at the moment: try again later`;
    throw new Refusal(503, { kind: "objectsMissing", message }, { "Retry-After": "10" });
  }
  response.set("Cache-Control", "no-store");
  // The extension tells its viewer how much of the file the browser loads unchecked.
  response.set("Timing-Allow-Origin", "*");
  response.redirect(307, objectAddress(holder, file, tokenFor(options, [holder.id], undefined)));
  request.resume();
}

function objectAddress({ url }: FleetProxy, { object, type }: { object: string; type: string }, token: string): string {
  const query = new URLSearchParams({ type, token });
  return `${url.replace(/\/$/, "")}/v1/objects/${object}?${query}`;
}

async function sendPlaylist(
  response: Response,
  path: string,
  object: string,
  { publicationStore }: PublishedOptions,
): Promise<void> {
  const content = await publicationStore.playlist(object);
  if (content === undefined) throw notFound(`Origo does not have ${path}`);
  response.set({
    "Content-Security-Policy": INERT,
    "Cache-Control": `public, max-age=${SHARED_SEC}`,
    ETag: `"${object}"`,
    "Content-Type": /\.mpd$/i.test(path) ? "application/dash+xml" : "application/vnd.apple.mpegurl",
  });
  response.send(Buffer.from(content));
}
