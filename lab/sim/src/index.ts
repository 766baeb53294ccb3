/** Simulated downloads, jobs in processes of their own, and pictures of the results. */
export { arrivalPanels } from "./arrivals";
export { boundMs } from "./bound";
export { capacityOf, simulateCoders, type CoderLoad, type ModelCoder } from "./coder-queue";
export { contentOf, sourceOf } from "./content";
export { drawTo } from "./draw";
export { simulateHttp } from "./http-client";
export { withPauses } from "./network";
export { inProcesses, isHelper, serve } from "./processes";
export { Random } from "./random";
export { even } from "./scenarios";
export { simulate, speaks } from "./simulate";
export { faultlessDraw, type Malice } from "./swarm/draw";
export { runSwarm } from "./swarm/run";
export { HTTP_MODES, PACKET_BYTES, PROTOCOL_MODES } from "./world";
export type { HttpMode, Mode, Outcome, ProxyLink, Tuning, World } from "./world";
