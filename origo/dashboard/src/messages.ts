/**
 * Messages: the types of Origo's answers, and reading them. Types only are taken from the schemas, so that zod stays out of
 * the page; the page trusts the Origo that served it.
 */
import type { ErrorsResponse, FleetResponse, RecordsResponse } from "../../src/schema";

export type { DownloadRecord, ErrorReport, FleetProxy, FleetResponse, RecordProxy, RecordsResponse } from "../../src/schema";

/** As in schema.ts. */
export const HEARTBEAT_MS = 2000;

export const getFleet = (): Promise<FleetResponse> => get("v1/fleet");
export const getErrors = (): Promise<ErrorsResponse> => get("v1/errors?limit=20");
export const getRecords = (before?: string): Promise<RecordsResponse> =>
  get(`v1/records?limit=50${before === undefined ? "" : `&before=${encodeURIComponent(before)}`}`);

async function get<T>(path: string): Promise<T> {
  const response = await fetch(path, { signal: AbortSignal.timeout(5000) });
  if (!response.ok) throw new Error(`Origo answered ${response.status}`);
  return await response.json() as T;
}
