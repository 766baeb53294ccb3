/**
 * Queries of the dashboard over the stored downloads, and their answers: the list of fields, pages of downloads,
 * charts, and the difference between two groups. Each message has one zod schema, which the page shares. Origo looks
 * up each field name in its list of fields and never puts the name into SQL.
 */
import { z } from "zod";
import { listOf } from "./list";

export const QUERY_LIMITS = {
  fieldChars: 64,
  valueChars: 1000,
  conditions: 16,
  valuesPerCondition: 64,
  columns: 96,
  groupFields: 2,
  groups: 200,
  bins: 200,
  scatterPoints: 5000,
  rowsPerPage: 500,
  /** Ten years. */
  bucketMs: 315_576_000_000,
} as const;

const fieldName = z.string().min(1).max(QUERY_LIMITS.fieldChars);
const scalar = z.union([z.string().max(QUERY_LIMITS.valueChars), z.number().finite(), z.boolean()]);
const finite = z.number().finite();

/**
 * One characteristic of a download. `unit` is null for text and pure numbers. `values` lists the values of a choice.
 * Besides the listed fields, `arm:ID` is the arm that the download drew of the experiment ID.
 */
export const Field = z
  .object({
    name: fieldName,
    label: z.string(),
    type: z.enum(["number", "text", "time", "boolean"]),
    unit: z.string().nullable(),
    origin: z.enum(["basic", "derived"]),
    help: z.string(),
    values: z.array(z.string()).optional(),
  })
  .strict();
export type Field = z.infer<typeof Field>;

/** Answer of GET /v1/fields. */
export const FieldsResponse = z.object({ fields: z.array(Field) }).strict();
export type FieldsResponse = z.infer<typeof FieldsResponse>;

/** `contains` is case-insensitive and plain text; `in` takes a list; `isNull` and `notNull` take no value. */
export const Condition = z.discriminatedUnion("op", [
  z.object({ field: fieldName, op: z.enum(["=", "!=", "<", "<=", ">", ">="]), value: scalar }).strict(),
  z
    .object({ field: fieldName, op: z.literal("contains"), value: z.string().min(1).max(QUERY_LIMITS.valueChars) })
    .strict(),
  z
    .object({
      field: fieldName,
      op: z.literal("in"),
      value: z.array(scalar).min(1).max(QUERY_LIMITS.valuesPerCondition),
    })
    .strict(),
  z.object({ field: fieldName, op: z.enum(["isNull", "notNull"]) }).strict(),
]);
export type Condition = z.infer<typeof Condition>;

const where = z.array(Condition).max(QUERY_LIMITS.conditions).default([]);
const groupBy = (most: number) =>
  z
    .array(fieldName)
    .max(most)
    .refine((names) => new Set(names).size === names.length, "must not name a field twice")
    .default([]);

/**
 * Body of POST /v1/query/downloads. Rows hold the cells of `columns`, in this order. `cursor` is the `next` of the
 * previous page.
 */
export const DownloadsQuery = z
  .object({
    where,
    columns: z.array(fieldName).min(1).max(QUERY_LIMITS.columns),
    sort: z.object({ field: fieldName, descending: z.boolean() }).strict().optional(),
    limit: z.number().int().min(1).max(QUERY_LIMITS.rowsPerPage).default(100),
    cursor: z.string().max(256).optional(),
  })
  .strict();
export type DownloadsQuery = z.input<typeof DownloadsQuery>;

export const Cell = z.union([z.string(), z.number(), z.boolean(), z.null()]);
export type Cell = z.infer<typeof Cell>;

/**
 * `ids[i]` is the download of `rows[i]`. `matching` counts all downloads that match; only the first page has it, and it
 * is null on later ones.
 */
export const DownloadsPage = z
  .object({
    ids: z.array(z.string()),
    rows: z.array(z.array(Cell)),
    matching: z.number().int().nullable(),
    next: z.string().nullable(),
  })
  .strict();
export type DownloadsPage = z.infer<typeof DownloadsPage>;

/** Body of POST /v1/query/chart. */
export const ChartQuery = z.discriminatedUnion("chart", [
  z.object({ chart: z.literal("box"), metric: fieldName, groupBy: groupBy(QUERY_LIMITS.groupFields), where }).strict(),
  z
    .object({
      chart: z.literal("histogram"),
      metric: fieldName,
      bins: z.number().int().min(1).max(QUERY_LIMITS.bins).default(40),
      groupBy: groupBy(1),
      where,
    })
    .strict(),
  z.object({ chart: z.literal("cdf"), metric: fieldName, groupBy: groupBy(1), where }).strict(),
  z
    .object({
      chart: z.literal("scatter"),
      x: fieldName,
      y: fieldName,
      points: z.number().int().min(1).max(QUERY_LIMITS.scatterPoints).default(2000),
      groupBy: groupBy(1),
      where,
    })
    .strict(),
  z
    .object({
      chart: z.literal("time"),
      metric: fieldName,
      statistic: z.enum(["median", "mean", "count", "sum"]).default("median"),
      bucketMs: z.number().int().min(1000).max(QUERY_LIMITS.bucketMs),
      groupBy: groupBy(1),
      where,
    })
    .strict(),
]);
export type ChartQuery = z.input<typeof ChartQuery>;

const group = z.array(Cell);

/** Quartiles by linear interpolation; whiskers are the outermost values within 1.5 interquartile ranges of the box. */
export const Box = z
  .object({
    group,
    n: z.number().int(),
    q1: finite,
    median: finite,
    q3: finite,
    whiskerLow: finite,
    whiskerHigh: finite,
    /** Values beyond the whiskers. If there are more than 200, these are drawn at random. */
    outliers: z.array(finite),
    outlierCount: z.number().int(),
  })
  .strict();
export type Box = z.infer<typeof Box>;

/**
 * Answer of POST /v1/query/chart. `n` counts the downloads of each group. Groups beyond the limit are left out, and
 * `groupsLeftOut` counts them.
 */
export const Chart = z.discriminatedUnion("chart", [
  z.object({ chart: z.literal("box"), boxes: z.array(Box), groupsLeftOut: z.number().int() }).strict(),
  z
    .object({
      chart: z.literal("histogram"),
      edges: z.array(finite),
      groupsLeftOut: z.number().int(),
      series: z.array(z.object({ group, n: z.number().int(), counts: z.array(z.number().int()) }).strict()),
    })
    .strict(),
  z
    .object({
      /** `values[i]` is the least value that `shares[i]` of the downloads do not exceed. */
      chart: z.literal("cdf"),
      groupsLeftOut: z.number().int(),
      series: z.array(
        z.object({ group, n: z.number().int(), values: z.array(finite), shares: z.array(finite) }).strict(),
      ),
    })
    .strict(),
  z
    .object({
      chart: z.literal("scatter"),
      groupsLeftOut: z.number().int(),
      series: z.array(
        z
          .object({ group, n: z.number().int(), x: z.array(finite), y: z.array(finite), ids: z.array(z.string()) })
          .strict(),
      ),
    })
    .strict(),
  z
    .object({
      /** A point for each bucket that has downloads, with the time at which the bucket begins. */
      chart: z.literal("time"),
      bucketMs: z.number().int(),
      groupsLeftOut: z.number().int(),
      series: z.array(
        z
          .object({
            group,
            n: z.number().int(),
            atMs: z.array(finite),
            values: z.array(finite),
            counts: z.array(z.number().int()),
          })
          .strict(),
      ),
    })
    .strict(),
]);
export type Chart = z.infer<typeof Chart>;

/** Body of POST /v1/query/difference: compares the metric where `field` is `b` with the metric where it is `a`. */
export const DifferenceQuery = z.object({ metric: fieldName, field: fieldName, a: scalar, b: scalar, where }).strict();
export type DifferenceQuery = z.input<typeof DifferenceQuery>;

/** `mean` and `median` are null if no download has the metric. */
const Arm = z
  .object({ n: z.number().int(), clients: z.number().int(), mean: finite.nullable(), median: finite.nullable() })
  .strict();

const interval = z.tuple([finite, finite]).nullable();

/**
 * Answer of POST /v1/query/difference: how much more the metric is in b than in a, for a typical client, with a 95 %
 * confidence interval. Each client counts once. `design` says which clients are compared, and `compared` how many:
 * with `pairs` those in both groups, each with itself; with `groups` those in one group only. It is null if no clients
 * can be compared, and then the other values are null too. An interval is null with fewer than 6 clients. `estimate` is
 * "mean" where many clients have equal values: then the means of the clients are compared, in place of typical clients.
 *
 * A rate (B/s) or a time (ms) that is above 0 in every download is compared by its logarithm. Then `ratio` is b over
 * a, and `difference` is what this ratio means for a typical client of a. Otherwise `ratio` is null. `enough` says
 * whether there are enough clients, and enough different values among them, to trust the interval.
 */
export const Difference = z
  .object({
    a: Arm,
    b: Arm,
    design: z.enum(["pairs", "groups"]).nullable(),
    compared: z.tuple([z.number().int(), z.number().int()]),
    estimate: z.enum(["typical", "mean"]).nullable(),
    difference: finite.nullable(),
    interval,
    ratio: finite.nullable(),
    ratioInterval: interval,
    enough: z.boolean(),
  })
  .strict();
export type Difference = z.infer<typeof Difference>;

/**
 * One packet that a client received: ms since the request, index into `proxies` of the record, generation, and the fate
 * of the packet.
 */
export const TracePacket = z.tuple([
  finite.nonnegative(),
  z.number().int().nonnegative(),
  z.number().int().nonnegative(),
  z.enum(["innovative", "duplicate", "late", "rejected"]),
]);
/** One thing the client sent to a proxy: ms since the request, index of the proxy. */
export const TraceFeedback = z.tuple([finite.nonnegative(), z.number().int().nonnegative()]);

/** Body item of POST /v1/traces, and answer of GET /v1/records/ID/trace. */
export const Trace = z
  .object({
    id: z.string().uuid().toLowerCase(),
    generationCount: z.number().int().nonnegative(),
    packets: listOf(TracePacket, 65_536),
    feedback: listOf(TraceFeedback, 65_536),
  })
  .strict();
export type Trace = z.infer<typeof Trace>;

/** Body of POST /v1/traces. */
export const TracesRequest = z.object({ traces: listOf(Trace, 16, 1) }).strict();
export type TracesRequest = z.infer<typeof TracesRequest>;

/**
 * Answer of POST /v1/import. `leftOut` is there if records of the file are implausible; `first` says what is wrong with
 * the first one.
 */
export const ImportResponse = z
  .object({
    accepted: z.number().int(),
    duplicate: z.number().int(),
    leftOut: z.object({ records: z.number().int(), first: z.string() }).strict().optional(),
  })
  .strict();
export type ImportResponse = z.infer<typeof ImportResponse>;
