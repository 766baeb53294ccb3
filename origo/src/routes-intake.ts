/** Intake: what clients and proxies send in. Ids make a repeat harmless; nothing of a refused batch is stored. */
import { endpoint, type Endpoint } from "./http";
import { ErrorsRequest, IntakeResponse, RecordsRequest } from "./schema";
import type { Store } from "./store";

export interface IntakeOptions {
  store: Store;
  nowMs: () => number;
}

export const intakeEndpoints = ({ store, nowMs }: IntakeOptions): Endpoint[] => [
  endpoint({
    method: "post", path: "/v1/records", access: "open", summary: "Records of downloads", body: RecordsRequest, answer: IntakeResponse, status: 202,
    handle: ({ body }) => store.addRecords(body.records, nowMs()),
  }),
  endpoint({
    method: "post", path: "/v1/errors", access: "open", summary: "Reports of errors", body: ErrorsRequest, answer: IntakeResponse, status: 202,
    handle: ({ body }) => store.addErrors(body.errors, nowMs()),
  }),
];
