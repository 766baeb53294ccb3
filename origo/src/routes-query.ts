/** Queries: what was stored, for the dashboard. */
import { z } from "zod";
import { endpoint, Refusal, whole, type Endpoint } from "./http";
import { ErrorsResponse, RecordsResponse, SCHEMA_LIMITS } from "./schema";
import type { Page, Store } from "./store";

const PageQuery = z.object({
  limit: whole(1, SCHEMA_LIMITS.recordsPerPage, SCHEMA_LIMITS.recordsPerPageDefault),
  before: z.string().uuid().toLowerCase().optional(),
}).strict();

export const queryEndpoints = ({ store }: { store: Store }): Endpoint[] => [
  endpoint({
    method: "get", path: "/v1/records", access: "viewer", summary: "Records, newest first", query: PageQuery, answer: RecordsResponse,
    handle: async ({ query }) => {
      const page = known(await store.records(query.limit, query.before), query.before);
      return { records: page.items, next: page.next } satisfies RecordsResponse;
    },
  }),
  endpoint({
    method: "get", path: "/v1/errors", access: "viewer", summary: "Reports of errors, newest first", query: PageQuery, answer: ErrorsResponse,
    handle: async ({ query }) => {
      const page = known(await store.errors(query.limit, query.before), query.before);
      return { errors: page.items, next: page.next } satisfies ErrorsResponse;
    },
  }),
];

function known<T>(page: Page<T> | undefined, before: string | undefined): Page<T> {
  if (page !== undefined) return page;
  throw new Refusal(404, { kind: "unknownId", field: "before", message: `before: nothing with the id ${before ?? ""} is stored` });
}
