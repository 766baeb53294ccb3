/** The coder service: one queue of tasks, and coders that take work from it. */
export { CoderLostError, cpuCoder, only, slowedCoder, type Coder } from "./coder";
export { CoderService, type CoderStage } from "./service";
export type { Piece } from "./task";
