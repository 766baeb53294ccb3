/**
 * Publishing: the endpoints of publishers (docs/spec/publications.md §4). Bodies are signed, so they are read whole and
 * the signature is checked first. A playlist needs no signature: its object's id is in a manifest that was signed.
 */
import type { Request, Response } from "express";
import {
  EnrolledPublisher,
  GrantsResponse,
  Manifest,
  PendingPublication,
  PUBLICATION_LIMITS,
  PublicationsResponse,
  Release,
  type PublisherAction,
} from "@tributary/contract/publication-schema";
import { objectNameOf, parseObjectId } from "@tributary/contract/tree";
import { z } from "zod";
import { sha256 } from "./compare";
import type { Configuration } from "./configuration";
import { endpoint, notFound, Refusal, type Call, type Endpoint } from "./http";
import type { IntakeGate } from "./intake-gate";
import { addressOf, type Publications } from "./publications";
import type { Publishers } from "./publishers";
import { busy } from "./routes-intake";
import type { PublicationStore } from "./store/publication-store";
import type { Store } from "./store/index";
import type { TokenSigner } from "./token";

/** A request for grants names up to 100 objects. */
const ACTION_BYTES_MAX = 64 * 1024;
const JOSE = "application/jose";

export interface PublishingOptions {
  store: Pick<Store, "checkRoom">;
  publications: Publications;
  publishers: Publishers;
  publicationStore: PublicationStore;
  publishingGate: IntakeGate;
  configuration: Configuration;
  tokens: TokenSigner;
  nowMs: () => number;
}

export const publishingEndpoints = (options: PublishingOptions): Endpoint[] => [
  endpoint({
    method: "post",
    path: "/v1/publisher",
    access: "web",
    summary: "Enrol as a publisher, get grants, release, unpublish or list: a JWS of the action",
    rawBody: JOSE,
    answer: z.union([EnrolledPublisher, GrantsResponse, Release, PublicationsResponse, z.object({}).strict()]),
    handle: async ({ request, response }) => {
      const action = await options.publishers.readAction(await textOf(request, response, options, ACTION_BYTES_MAX));
      return act(action, request, options);
    },
  }),
  endpoint({
    method: "post",
    path: "/v1/publications",
    access: "web",
    summary: "Begin to publish: a JWS of the manifest",
    rawBody: JOSE,
    answer: PendingPublication,
    status: 201,
    handle: async ({ request, response }) => {
      const text = await textOf(request, response, options, PUBLICATION_LIMITS.manifestBytes);
      const manifest = await options.publishers.readSigned(text, Manifest);
      return begin(manifest, text, options);
    },
  }),
  endpoint({
    method: "put",
    path: "/v1/objects/:object",
    access: "web",
    summary: "Send a playlist that a manifest names",
    rawBody: "application/octet-stream",
    requestMsMax: 60_000,
    handle: (call) => takePlaylist(call, options),
  }),
];

export async function begin(
  manifest: Manifest,
  text: string,
  { store, publications }: Pick<PublishingOptions, "store" | "publications">,
): Promise<PendingPublication> {
  await store.checkRoom().catch(busy);
  const proxies = await publications.begin(manifest, text);
  return { key: manifest.key, name: manifest.name, revision: manifest.revision, proxies };
}

async function act(action: PublisherAction, request: Request, options: PublishingOptions): Promise<unknown> {
  const { publications, publishers } = options;
  const base = baseOf(request);
  switch (action.kind) {
    case "enrol":
      return publishers.enrol(action, request.ip ?? "");
    case "grants":
      return grants(action, action.objects, options);
    case "release":
      return release(action, base, publications);
    case "unpublish":
      await publications.unpublish(action);
      return {};
    case "list": {
      const own = publications.list().filter(({ key }) => key === action.key);
      const shown = own.slice(0, PUBLICATION_LIMITS.publicationsPerPage);
      return { publications: await Promise.all(shown.map((each) => publications.describe(each, base))) };
    }
  }
}

type Granting = Pick<PublishingOptions, "publications" | "configuration" | "tokens" | "nowMs">;

/** One grant for each object, for all proxies of the publication. */
export async function grants(
  { key, name, revision }: { key: string; name: string; revision: number },
  objects: readonly string[],
  { publications, configuration, tokens, nowMs }: Granting,
): Promise<GrantsResponse> {
  const aud = await publications.grantees({ key, name, revision }, objects);
  const iat = Math.floor(nowMs() / 1000);
  const exp = iat + 60 * configuration.value("origo.grantMinutes");
  return { grants: objects.map((object) => tokens.sign({ iss: "origo", aud, object, iat, exp })) };
}

export async function release(
  { key, name, revision }: { key: string; name: string; revision: number },
  base: string,
  publications: Publications,
): Promise<Release> {
  await publications.release({ key, name, revision });
  const address = addressOf(base, { key, name });
  return { address, embed: address };
}

async function takePlaylist({ params, request, response }: Call, options: PublishingOptions): Promise<void> {
  const { publicationStore, publishingGate, store } = options;
  const id = params["object"] ?? "";
  const object = parseObjectId(id);
  if (object === undefined)
    throw new Refusal(400, { kind: "badField", field: "object", message: "object: must be an object's id" });
  const { playlistBytes } = PUBLICATION_LIMITS;
  if (object.bytes > playlistBytes) {
    const message = `a playlist may have ${playlistBytes} bytes, this object has ${object.bytes}`;
    throw new Refusal(413, { kind: "bodyTooLarge", message, got: object.bytes, limit: playlistBytes });
  }
  if (!(await publicationStore.isPlaylist(id))) throw notFound(`no manifest has a playlist with the object ${id}`);
  const body = await publishingGate.read(request, response, object.bytes);
  await store.checkRoom().catch(busy);
  const { root } = objectNameOf(body, sha256);
  if (root !== object.root || body.length !== object.bytes) {
    const message = `the bytes are not the object ${id}: they have the root ${root} and the length ${body.length}`;
    throw new Refusal(422, { kind: "rootMismatch", message });
  }
  await publicationStore.addPlaylist(id, body);
}

async function textOf(
  request: Request,
  response: Response,
  { publishingGate }: PublishingOptions,
  bytesMax: number,
): Promise<string> {
  if (!request.is(JOSE)) {
    const message = `the body must be ${JOSE}, got ${request.headers["content-type"] ?? "no content type"}`;
    throw new Refusal(415, { kind: "unsupportedMediaType", message });
  }
  return (await publishingGate.read(request, response, bytesMax)).toString("latin1").trim();
}

/** This Origo's address, as the sender of the request knows it. */
export function baseOf(request: Request): string {
  const scheme = request.headers["x-forwarded-proto"] === "https" ? "https" : request.protocol;
  return `${scheme}://${request.get("host") ?? "localhost"}`;
}
