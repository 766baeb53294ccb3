/** What run.ts and driver.ts say to each other. Types only. */
import type { GetOptions, TransportOption } from "@tributary/client";
import type { DownloadRecord } from "@tributary/origo/schema";

export type SessionKind = "warm" | "new";

export type Order =
  | { id: number; kind: "get"; url: string; session: SessionKind; transport: TransportOption; options: Omit<GetOptions, "signal"> }
  | { id: number; kind: "json"; url: string };

/** `cpuMs`: processor time of the client's process meanwhile. */
export interface Reply {
  id: number;
  cpuMs: number;
  record?: DownloadRecord;
  /** Answer to `json`. */
  json?: unknown;
  problem?: string;
}
