/** Intake: what clients and proxies send in. Ids make a repeat harmless; nothing of a refused batch is stored. */
import { endpoint, type Endpoint } from "./http";
import { ErrorsRequest, IntakeResponse, RecordsRequest } from "./schema";
import type { Store } from "./store";

export interface IntakeOptions {
  store: Store;
  nowMs: () => number;
  /** Something was stored. */
  onIntake: (kind: "record" | "error", result: IntakeResponse) => void;
}

export const intakeEndpoints = ({ store, nowMs, onIntake }: IntakeOptions): Endpoint[] => [
  endpoint({
    method: "post", path: "/v1/records", access: "open", summary: "Records of downloads", body: RecordsRequest, answer: IntakeResponse, status: 202,
    handle: async ({ body }) => {
      const result = await store.addRecords(body.records, nowMs());
      onIntake("record", result);
      return result;
    },
  }),
  endpoint({
    method: "post", path: "/v1/errors", access: "open", summary: "Reports of errors", body: ErrorsRequest, answer: IntakeResponse, status: 202,
    handle: async ({ body }) => {
      const result = await store.addErrors(body.errors, nowMs());
      onIntake("error", result);
      return result;
    },
  }),
];
