/**
 * Intake: the endpoints to which clients and proxies send records, errors and traces, as JSON, which may be compressed
 * by gzip. Each has an id, so sending it twice is harmless. A batch is stored whole or refused whole. With Retry-After,
 * the answer is 429 when this sender sends too much (intake-gate.ts), and 503 when all senders send too much or the
 * database is full.
 */
import { BODY_BYTES_MAX, endpoint, Refusal, type Endpoint } from "./http";
import type { IntakeGate } from "./intake-gate";
import { networkOf } from "./network";
import { TracesRequest } from "@tributary/contract/query-schema";
import { recordFault, reportFault, type RecordFault } from "./plausible";
import { isRecordsRequest } from "./record-check";
import { ErrorsRequest, IntakeResponse, RecordsRequest } from "@tributary/contract/schema";
import { DiskFull, IntakeFull, type Store } from "./store/index";

/** The largest body with traces. A trace has an entry for each packet. */
const TRACE_BYTES_MAX = 4_000_000;

export interface IntakeOptions {
  store: Store;
  intakeGate: IntakeGate;
  nowMs: () => number;
  /** Called when something was stored. */
  onIntake: (kind: "record" | "error", result: IntakeResponse) => void;
  /** Called for each proxy that clients in this network accuse without evidence. */
  onHint: (proxyId: string, network: string) => void;
}

export const intakeEndpoints = ({ store, intakeGate, nowMs, onIntake, onHint }: IntakeOptions): Endpoint[] => [
  endpoint({
    method: "post",
    path: "/v1/records",
    access: "open",
    summary: "Send records of downloads",
    body: RecordsRequest,
    reader: intakeGate.reader(BODY_BYTES_MAX),
    isPlain: isRecordsRequest,
    answer: IntakeResponse,
    status: 202,
    handle: async ({ body }) => {
      refuseImplausible("records", body.records, (record) => recordFault(record, nowMs()));
      const result = await store.addRecords(body.records, nowMs()).catch(busy);
      onIntake("record", result);
      return result;
    },
  }),
  endpoint({
    method: "post",
    path: "/v1/errors",
    access: "open",
    summary: "Send reports of errors",
    body: ErrorsRequest,
    reader: intakeGate.reader(BODY_BYTES_MAX),
    answer: IntakeResponse,
    status: 202,
    handle: async ({ body, request }) => {
      refuseImplausible("errors", body.errors, (report) => reportFault(report, nowMs()));
      const result = await store.addErrors(body.errors, nowMs()).catch(busy);
      onIntake("error", result);
      const accused = new Set(body.errors.flatMap((report) => report.accused ?? []));
      for (const proxyId of accused) onHint(proxyId, networkOf(request.ip ?? ""));
      return result;
    },
  }),
  endpoint({
    method: "post",
    path: "/v1/traces",
    access: "open",
    summary: "Send traces: when each packet of a download arrived",
    body: TracesRequest,
    reader: intakeGate.reader(TRACE_BYTES_MAX),
    answer: IntakeResponse,
    status: 202,
    handle: ({ body }) => store.addTraces(body.traces, nowMs()).catch(busy),
  }),
];

/** Throws a Refusal that names the first one at fault. */
function refuseImplausible<T>(list: string, items: readonly T[], faultOf: (item: T) => RecordFault | undefined): void {
  for (const [index, item] of items.entries()) {
    const fault = faultOf(item);
    if (fault === undefined) continue;
    const field = `${list}[${index}].${fault.field}`;
    throw new Refusal(400, { ...fault, kind: "badField", field, message: `${field}: ${fault.message}` });
  }
}

/** Turns an error into a 503 when the same data may be stored later. */
export function busy(error: Error): never {
  if (!(error instanceof IntakeFull || error instanceof DiskFull)) throw error;
  const [kind, seconds] = error instanceof DiskFull ? ([error.kind, "30"] as const) : (["busy", "1"] as const);
  throw new Refusal(
    503,
    { kind, message: error.message, got: error.got, limit: error.limit },
    { "Retry-After": seconds },
  );
}
