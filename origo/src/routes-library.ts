/** Library: the endpoints of the dashboard's page of publications and publishers. */
import { EnrolmentCode } from "@tributary/contract/admin-schema";
import {
  LibraryResponse,
  OwnGrants,
  OwnPublication,
  OwnRelease,
  PublisherChange,
} from "@tributary/contract/library-schema";
import {
  GrantsResponse,
  PendingPublication,
  PUBLICATION_LIMITS,
  Release,
} from "@tributary/contract/publication-schema";
import { endpoint, notFound, type Endpoint } from "./http";
import type { OwnPublisher } from "./own-publisher";
import { baseOf, begin, grants, release, type PublishingOptions } from "./routes-publishing";

export interface LibraryOptions extends PublishingOptions {
  ownPublisher: OwnPublisher;
  /** An admin changed something about publishers. */
  onPublishers: () => void;
}

export const libraryEndpoints = (options: LibraryOptions): Endpoint[] => [
  endpoint({
    method: "get",
    path: "/v1/library",
    access: "viewer",
    summary: "List what is published, and who may publish",
    answer: LibraryResponse,
    handle: ({ request }) => libraryOf(baseOf(request), options),
  }),
  endpoint({
    method: "delete",
    path: "/v1/publications/:key/:name",
    access: "admin",
    summary: "Unpublish: proxies forget the objects that nothing else needs",
    answer: LibraryResponse,
    handle: async ({ params: { key = "", name = "" }, request }) => {
      await options.publications.unpublish({ key, name });
      return libraryOf(baseOf(request), options);
    },
  }),
  ...publisherEndpoints(options),
  ...ownEndpoints(options),
];

const publisherEndpoints = (options: LibraryOptions): Endpoint[] => {
  const { publishers, onPublishers } = options;
  const unknown = (key: string): Error => notFound(`no publisher with the key ${key} is enrolled`);
  return [
    endpoint({
      method: "post",
      path: "/v1/publishers",
      access: "admin",
      summary: "Make a one-time code that lets one more publisher in",
      answer: EnrolmentCode,
      status: 201,
      handle: ({ author, response }) => {
        response.set("Cache-Control", "no-store");
        return publishers.newCode(author);
      },
    }),
    endpoint({
      method: "patch",
      path: "/v1/publishers/:key",
      access: "admin",
      summary: "Set the quota of a publisher",
      body: PublisherChange,
      answer: LibraryResponse,
      handle: async ({ params: { key = "" }, body, request }) => {
        if (!(await publishers.setQuota(key, body.quotaBytes))) throw unknown(key);
        onPublishers();
        return libraryOf(baseOf(request), options);
      },
    }),
    endpoint({
      method: "delete",
      path: "/v1/publishers/:key",
      access: "admin",
      summary: "Revoke a publisher: its key is never let in again. What it published stays until it is unpublished",
      answer: LibraryResponse,
      handle: async ({ params: { key = "" }, request }) => {
        if (!(await publishers.revoke(key))) throw unknown(key);
        onPublishers();
        return libraryOf(baseOf(request), options);
      },
    }),
  ];
};

/** Publishing as Origo's own publisher. */
const ownEndpoints = (options: LibraryOptions): Endpoint[] => {
  const { ownPublisher, publications } = options;
  return [
    endpoint({
      method: "post",
      path: "/v1/library/publications",
      access: "admin",
      summary: "Begin to publish as Origo's own publisher",
      body: OwnPublication,
      bodyBytesMax: PUBLICATION_LIMITS.manifestBytes,
      answer: PendingPublication,
      status: 201,
      handle: async ({ body }) => {
        const { manifest, text } = await ownPublisher.manifest(body);
        return begin(manifest, text, options);
      },
    }),
    endpoint({
      method: "post",
      path: "/v1/library/grants",
      access: "admin",
      summary: "Get grants for objects of Origo's own publisher",
      body: OwnGrants,
      answer: GrantsResponse,
      handle: async ({ body: { name, revision, objects } }) =>
        grants({ key: (await ownPublisher.keys()).key, name, revision }, objects, options),
    }),
    endpoint({
      method: "post",
      path: "/v1/library/releases",
      access: "admin",
      summary: "Release what was published as Origo's own publisher",
      body: OwnRelease,
      answer: Release,
      handle: async ({ body, request }) =>
        release({ ...body, key: (await ownPublisher.keys()).key }, baseOf(request), publications),
    }),
  ];
};

async function libraryOf(base: string, options: LibraryOptions): Promise<LibraryResponse> {
  const { publications, publishers, publicationStore, ownPublisher, configuration } = options;
  const all = publications.list().slice(0, PUBLICATION_LIMITS.publicationsPerPage);
  const { key: ownKey } = await ownPublisher.keys();
  const bytes = await publicationStore.bytesByPublisher();
  return {
    publications: await Promise.all(all.map((each) => publications.describe(each, base))),
    publishers: publishers
      .list()
      .map((publisher) => ({
        ...publisher,
        publications: new Set(all.filter(({ key }) => key === publisher.key).map(({ name }) => name)).size,
        bytes: bytes.get(publisher.key) ?? 0,
        isOwn: publisher.key === ownKey,
      })),
    quotaBytesDefault: configuration.value("origo.publisherBytes"),
  };
}
