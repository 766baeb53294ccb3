/** For tests of the publisher's commands: an Origo and proxies that speak docs/spec/publications.md, in memory. */
import { createHash } from "node:crypto";
import http from "node:http";
import type { AddressInfo } from "node:net";
import {
  isPlaylist,
  Manifest,
  PublisherAction,
  type LibraryProxy,
  type PublicationRow,
} from "@tributary/contract/publication-schema";
import { open, unchecked } from "@tributary/contract/signed";
import { hexOf, LeafMaker, objectId, Tree } from "@tributary/contract/tree";

const sha256 = (bytes: Uint8Array): Buffer => createHash("sha256").update(bytes).digest();

export function idOf(bytes: Uint8Array): string {
  const leaves = new LeafMaker(sha256);
  leaves.update(bytes);
  return objectId({ root: hexOf(new Tree(leaves.finish(), sha256).root), bytes: bytes.length });
}

type Handler = (request: http.IncomingMessage, response: http.ServerResponse) => Promise<void> | void;

async function serve(handle: Handler): Promise<{ url: string; close(): void }> {
  const server = http.createServer(
    (request, response) => void Promise.resolve(handle(request, response)).catch(() => response.destroy()),
  );
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const close = (): void => {
    server.closeAllConnections();
    server.close();
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close };
}

async function bodyOf(request: http.IncomingMessage): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece as Buffer);
  return Buffer.concat(pieces);
}

function refuse(response: http.ServerResponse, status: number, kind: string, message = kind): void {
  response.writeHead(status).end(JSON.stringify({ error: { kind, message } }));
}

export interface Publication {
  manifest: Manifest;
  text: string;
}

/** What the stand-in Origo does next. */
export interface OrigoMood {
  /** Origo's clock less the real one. */
  aheadMs?: number;
  code?: string;
  announce?: [number, string];
  grants?: [number, string];
  release?: [number, string];
}

export class PublishingOrigo {
  mood: OrigoMood = {};
  url = "";
  proxies: LibraryProxy[] = [];
  readonly pending = new Map<string, Publication>();
  readonly released = new Map<string, Publication>();
  readonly playlists = new Map<string, Buffer>();
  readonly actions: string[] = [];
  /** Called after the first manifest. */
  onceAnnounced: (() => void) | undefined;
  #keys = new Set<string>();
  #close = (): void => undefined;

  async start(): Promise<this> {
    const { url, close } = await serve((request, response) => this.#answer(request, response));
    this.url = url;
    this.#close = close;
    return this;
  }

  stop(): void {
    this.#close();
  }

  get #nowMs(): number {
    return Date.now() + (this.mood.aheadMs ?? 0);
  }

  async #answer(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    response.setHeader("date", new Date(this.#nowMs).toUTCString());
    const { pathname } = new URL(request.url ?? "", "http://o");
    const [, , kind, id = "", name = ""] = pathname.split("/");
    const body = await bodyOf(request);
    if (kind === "publisher") return this.#act(body.toString(), response);
    if (kind === "publications" && request.method === "POST") return this.#announce(body.toString(), response);
    if (kind === "publications") return this.#publication(name, response);
    if (pathname.startsWith("/v/")) return this.#playlist(decodeURIComponent(pathname), response);
    if (idOf(body) !== id) return refuse(response, 422, "rootMismatch");
    this.playlists.set(id, body);
    response.writeHead(201).end();
  }

  async #act(text: string, response: http.ServerResponse): Promise<void> {
    const { key } = unchecked(text) as { key: string };
    const action = await open(text, key, PublisherAction);
    this.actions.push(action.kind);
    if (Math.abs(action.atMs - this.#nowMs) > 300_000) return refuse(response, 400, "clockWrong");
    const said = (value: object): void => void response.end(JSON.stringify(value));
    if (action.kind === "enrol") {
      if (action.code !== this.mood.code) return refuse(response, 403, "wrongCode", "This code is wrong");
      this.#keys.add(key);
      return said({ key, label: action.label, quotaBytes: 1e9 });
    }
    if (!this.#keys.has(key) && this.mood.code !== undefined) return refuse(response, 403, "keyUnknown", "Unknown key");
    if (action.kind === "list") return said({ publications: this.#rows() });
    if (action.kind === "grants") {
      if (this.mood.grants) return refuse(response, ...this.mood.grants);
      return said({ grants: action.objects.map((object) => `grant ${object}`) });
    }
    if (action.kind === "unpublish") return void (this.released.delete(action.name), said({}));
    if (this.mood.release) return refuse(response, ...this.mood.release);
    this.released.set(action.name, this.pending.get(action.name)!);
    this.pending.delete(action.name);
    said({ address: `${this.url}/v/${key}/${action.name}/`, embed: `${this.url}/v/${key}/${action.name}/` });
  }

  #rows(): PublicationRow[] {
    const row = (state: PublicationRow["state"], { manifest }: Publication): PublicationRow => ({
      key: manifest.key,
      name: manifest.name,
      revision: manifest.revision,
      state,
      files: manifest.files.length,
      bytes: 5,
      servedBytes: 1_500_000,
      holders: this.proxies.map(({ id, name }) => ({ id, name })),
      missingObjects: 0,
      atMs: 1,
      address: `${this.url}/v/${manifest.key}/${manifest.name}/`,
      embed: `${this.url}/v/${manifest.key}/${manifest.name}/`,
    });
    return [
      ...[...this.pending.values()].map((each) => row("pending", each)),
      ...[...this.released.values()].map((each) => row("released", each)),
    ];
  }

  async #announce(text: string, response: http.ServerResponse): Promise<void> {
    const { key } = unchecked(text) as { key: string };
    const manifest = await open(text, key, Manifest);
    if (this.mood.announce) return refuse(response, ...this.mood.announce);
    const { name, revision } = manifest;
    const before = this.pending.get(name) ?? this.released.get(name);
    if (before && before.text !== text && before.manifest.revision >= revision)
      return refuse(response, 409, "revisionOld");
    this.pending.set(name, { manifest, text });
    response.writeHead(201).end(JSON.stringify({ key, name, revision, proxies: this.proxies }));
    this.onceAnnounced?.();
    this.onceAnnounced = undefined;
  }

  #publication(name: string, response: http.ServerResponse): void {
    const found = this.released.get(name);
    if (!found) return refuse(response, 404, "notFound");
    const proxies = this.proxies.map(({ id, name: called, url }) => ({ id, name: called, url }));
    response.end(JSON.stringify({ manifest: found.text, proxies, holders: proxies.length }));
  }

  #playlist(pathname: string, response: http.ServerResponse): void {
    const [, , , name = "", ...parts] = pathname.split("/");
    const file = this.released.get(name)?.manifest.files.find(({ path }) => path === parts.join("/"));
    const body = file && isPlaylist(file.path) ? this.playlists.get(file.object) : undefined;
    if (!body) return refuse(response, 404, "notFound");
    response.end(body);
  }
}

/** What the stand-in proxy does with uploads. */
export interface LibraryMood {
  /** Breaks the connection after so many bytes of a PATCH. `times`: so often. */
  breakAfterBytes?: number;
  times?: number;
  /** Answers every PATCH so. */
  patch?: [number, string];
}

export class LibraryStandIn {
  mood: LibraryMood = {};
  info!: LibraryProxy;
  readonly objects = new Map<string, Buffer>();
  readonly parts = new Map<string, Buffer>();
  patches = 0;
  #close = (): void => undefined;
  readonly #name: string;

  constructor(name: string) {
    this.#name = name;
  }

  async start(): Promise<this> {
    const { url, close } = await serve((request, response) => this.#answer(request, response));
    this.info = { id: this.#name, name: this.#name, url, freeBytes: 1e9 };
    this.#close = close;
    return this;
  }

  stop(): void {
    this.#close();
  }

  async #answer(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    const { pathname } = new URL(request.url ?? "", "http://p");
    const id = pathname.split("/")[3] ?? "";
    if (request.method === "PATCH") return this.#patch(id, request, response);
    const whole = this.objects.get(id);
    if (request.method === "GET") return whole ? void response.end(whole) : refuse(response, 404, "objectMissing");
    const part = this.parts.get(id);
    if (whole) return void response.writeHead(200, { "content-length": whole.length }).end();
    response.writeHead(part ? 204 : 404, part && { "upload-offset": part.length }).end();
  }

  async #patch(id: string, request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    this.patches++;
    if (request.headers.authorization !== `Bearer grant ${id}`) return refuse(response, 401, "grantMissing");
    if (this.mood.patch) return refuse(response, ...this.mood.patch);
    const before = this.parts.get(id) ?? Buffer.alloc(0);
    const offset = Number(request.headers["upload-offset"]);
    if (offset !== before.length) return refuse(response, 409, "offsetWrong");
    const pieces = [before];
    const { breakAfterBytes, times = 1 } = this.mood;
    const isCut = breakAfterBytes !== undefined && times > 0;
    if (isCut) this.mood.times = times - 1;
    let bytes = 0;
    for await (const piece of request) {
      pieces.push(piece as Buffer);
      bytes += (piece as Buffer).length;
      this.parts.set(id, Buffer.concat(pieces));
      if (isCut && bytes >= breakAfterBytes) return void request.socket.destroy();
    }
    const whole = Buffer.concat(pieces);
    if (whole.length < Number(id.split("-")[1])) {
      return void response.writeHead(204, { "upload-offset": whole.length }).end();
    }
    this.parts.delete(id);
    if (idOf(whole) !== id) return refuse(response, 422, "rootMismatch");
    this.objects.set(id, whole);
    response.writeHead(201).end();
  }
}
