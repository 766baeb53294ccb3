import type { FleetProxy as Base } from "../../src/schema";
export type FleetProxy = Base & { place?: { lat: number; lon: number } | null; operator?: string; state?: "live" | "draining" | "disabled" };
export interface FleetResponse { nowMs: number; proxies: FleetProxy[] }
