/** Queries: the endpoints that read what was stored, for the dashboard, and that export and import all records. */
import { pipeline } from "node:stream/promises";
import { z } from "zod";
import { HeavyWork, HeavyWorkFull } from "./heavy-work";
import { endpoint, notFound, Refusal, whole, type Call, type Endpoint } from "./http";
import {
  Chart,
  ChartQuery,
  Difference,
  DifferenceQuery,
  DownloadsPage,
  DownloadsQuery,
  FieldsResponse,
  ImportResponse,
  Trace,
} from "@tributary/contract/query-schema";
import { busy } from "./routes-intake";
import { DownloadRecord, ErrorsResponse, RecordsResponse, SCHEMA_LIMITS } from "@tributary/contract/schema";
import {
  checkArms,
  exportCsv,
  FIELDS,
  importFile,
  queryChart,
  queryDifference,
  queryDownloads,
  QueryFault,
  withParquet,
  type Page,
  type Store,
} from "./store/index";

const PageQuery = z
  .object({
    limit: whole(1, SCHEMA_LIMITS.recordsPerPage, SCHEMA_LIMITS.recordsPerPageDefault),
    before: z.string().uuid().toLowerCase().optional(),
  })
  .strict();

const FileQuery = z.object({ format: z.enum(["csv", "parquet"]) }).strict();
const TYPES = { csv: "text/csv; charset=utf-8", parquet: "application/vnd.apache.parquet" } as const;
/** An import may take this long, since the file may be large and the connection slow. */
const IMPORT_MS_MAX = 3_600_000;

/** An export whose receiver takes nothing for this time ends, because others wait for its turn. */
const EXPORT_SILENT_MS_MAX = 60_000;

/** Questions are many and short. A page asks for up to 64 at once. */
const questionWork = { runningMax: 2, waitingMax: 64 };
const fileWork = { runningMax: 2, waitingMax: 4 };

/** Runs the work of an endpoint in its turn. Nothing runs for a caller that has gone. */
function inTurn(
  heavy: HeavyWork,
  { author, response }: Pick<Call, "author" | "response">,
  work: () => Promise<unknown>,
) {
  return heavy
    .run(author, () => !response.destroyed, work)
    .catch((error: unknown) => {
      if (!(error instanceof HeavyWorkFull)) throw error;
      const { message, got, limit } = error;
      throw new Refusal(429, { kind: "tooFast", message, got, limit }, { "Retry-After": "5" });
    });
}

export const queryEndpoints = ({ store, nowMs }: { store: Store; nowMs: () => number }): Endpoint[] => [
  ...pages(store),
  ...questions(store),
  ...files(store, nowMs),
];

const pages = (store: Store): Endpoint[] => [
  endpoint({
    method: "get",
    path: "/v1/records",
    access: "viewer",
    summary: "List records, newest first",
    query: PageQuery,
    answer: RecordsResponse,
    handle: async ({ query }) => {
      const page = known(await store.records(query.limit, query.before), query.before);
      return { records: page.items, next: page.next } satisfies RecordsResponse;
    },
  }),
  endpoint({
    method: "get",
    path: "/v1/errors",
    access: "viewer",
    summary: "List reports of errors, newest first",
    query: PageQuery,
    answer: ErrorsResponse,
    handle: async ({ query }) => {
      const page = known(await store.errors(query.limit, query.before), query.before);
      return { errors: page.items, next: page.next } satisfies ErrorsResponse;
    },
  }),
  endpoint({
    method: "get",
    path: "/v1/records/:id",
    access: "viewer",
    summary: "Get one record",
    answer: DownloadRecord,
    handle: async ({ params }) => there(await store.record(idOf(params)), "record"),
  }),
  endpoint({
    method: "get",
    path: "/v1/records/:id/trace",
    access: "viewer",
    summary: "Get the trace of a download, if there is one: when each packet arrived",
    answer: Trace,
    handle: async ({ params }) => there(await store.trace(idOf(params)), "trace"),
  }),
];

const questions = ({ database: { patient: database } }: Store, heavy = new HeavyWork(questionWork)): Endpoint[] => {
  const answered = (call: Call<unknown, Parameters<typeof checkArms>[1]>, ask: () => Promise<unknown>) =>
    inTurn(heavy, call, () => checkArms(database, call.body).then(ask).catch(refused));
  return [
    endpoint({
      method: "get",
      path: "/v1/fields",
      access: "viewer",
      summary: "List the fields of a download",
      answer: FieldsResponse,
      handle: () => ({ fields: FIELDS.map(({ sql: _sql, pattern: _pattern, bounds: _bounds, ...field }) => field) }),
    }),
    endpoint({
      method: "post",
      path: "/v1/query/downloads",
      access: "viewer",
      summary: "Get a page of the table of downloads",
      body: DownloadsQuery,
      answer: DownloadsPage,
      handle: (call) => answered(call, () => queryDownloads(database, call.body)),
    }),
    endpoint({
      method: "post",
      path: "/v1/query/chart",
      access: "viewer",
      summary: "Compute a chart over downloads",
      body: ChartQuery,
      answer: Chart,
      handle: (call) => answered(call, () => queryChart(database, call.body)),
    }),
    endpoint({
      method: "post",
      path: "/v1/query/difference",
      access: "viewer",
      summary: "Compute the difference between two groups of downloads",
      body: DifferenceQuery,
      answer: Difference,
      handle: (call) => answered(call, () => queryDifference(database, call.body)),
    }),
  ];
};

const files = (store: Store, nowMs: () => number, heavy = new HeavyWork(fileWork)): Endpoint[] => [
  endpoint({
    method: "get",
    path: "/v1/export",
    access: "viewer",
    summary: "Export all records as one file",
    query: FileQuery,
    answer: "application/octet-stream",
    handle: ({ query: { format }, response, author }) =>
      inTurn(heavy, { response, author }, async () => {
        response.setTimeout(EXPORT_SILENT_MS_MAX, () => response.destroy());
        response.set({
          "Content-Type": TYPES[format],
          "Content-Disposition": `attachment; filename="tributary-records.${format}"`,
        });
        if (format === "csv") await pipeline(exportCsv(store.database), response);
        else await withParquet(store, (file) => pipeline(file, response)).catch(busy);
      }),
  }),
  endpoint({
    method: "post",
    path: "/v1/import",
    access: "admin",
    summary: "Import the records of an exported file that are not stored yet",
    query: FileQuery,
    rawBody: "application/octet-stream",
    answer: ImportResponse,
    requestMsMax: IMPORT_MS_MAX,
    handle: ({ query: { format }, request, ...call }) =>
      inTurn(heavy, call, () => importFile(store, format, request, nowMs()).catch(busy).catch(refused)),
  }),
];

function known<T>(page: Page<T> | undefined, before: string | undefined): Page<T> {
  if (page !== undefined) return page;
  throw new Refusal(404, {
    kind: "unknownId",
    field: "before",
    message: `before: nothing is stored with the id ${before ?? ""}`,
  });
}

function there<T>(found: T | undefined, what: string): T {
  if (found === undefined) throw notFound(`there is no ${what} with this id`);
  return found;
}

function idOf(params: Record<string, string>): string {
  const id = z.string().uuid().toLowerCase().safeParse(params["id"]);
  if (!id.success) throw new Refusal(400, { kind: "badField", field: "id", message: "id: must be a UUID" });
  return id.data;
}

function refused(error: unknown): never {
  if (error instanceof QueryFault)
    throw new Refusal(400, { kind: "badField", field: error.field, message: error.message });
  throw error;
}
