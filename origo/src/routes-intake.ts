/**
 * Intake: what clients and proxies send in, as JSON, compressed by gzip where they like. Ids make a repeat harmless;
 * nothing of a refused batch is stored. When more waits than can be stored soon, or the disk is almost full, the answer
 * is 503 with Retry-After.
 */
import { endpoint, Refusal, type Endpoint } from "./http";
import { TracesRequest } from "@tributary/contract/query-schema";
import { isRecordsRequest } from "./record-check";
import { ErrorsRequest, IntakeResponse, RecordsRequest } from "@tributary/contract/schema";
import { DiskFull, IntakeFull, type Store } from "./store/index";

/** Of traces, which hold an entry a packet. */
const TRACE_BYTES_MAX = 4_000_000;

export interface IntakeOptions {
  store: Store;
  nowMs: () => number;
  /** Something was stored. */
  onIntake: (kind: "record" | "error", result: IntakeResponse) => void;
}

export const intakeEndpoints = ({ store, nowMs, onIntake }: IntakeOptions): Endpoint[] => [
  endpoint({
    method: "post",
    path: "/v1/records",
    access: "open",
    summary: "Records of downloads",
    body: RecordsRequest,
    isPlain: isRecordsRequest,
    answer: IntakeResponse,
    status: 202,
    handle: async ({ body }) => {
      const result = await store.addRecords(body.records, nowMs()).catch(busy);
      onIntake("record", result);
      return result;
    },
  }),
  endpoint({
    method: "post",
    path: "/v1/errors",
    access: "open",
    summary: "Reports of errors",
    body: ErrorsRequest,
    answer: IntakeResponse,
    status: 202,
    handle: async ({ body }) => {
      const result = await store.addErrors(body.errors, nowMs()).catch(busy);
      onIntake("error", result);
      return result;
    },
  }),
  endpoint({
    method: "post",
    path: "/v1/traces",
    access: "open",
    summary: "Arrivals of the packets of downloads",
    body: TracesRequest,
    bodyBytesMax: TRACE_BYTES_MAX,
    answer: IntakeResponse,
    status: 202,
    handle: ({ body }) => store.addTraces(body.traces, nowMs()).catch(busy),
  }),
];

/** For what was not stored now and may be later. */
export function busy(error: Error): never {
  if (!(error instanceof IntakeFull || error instanceof DiskFull)) throw error;
  const [kind, seconds] = error instanceof DiskFull ? ["diskFull", "30"] : ["busy", "1"];
  throw new Refusal(
    503,
    { kind, message: error.message, got: error.got, limit: error.limit },
    { "Retry-After": seconds },
  );
}
