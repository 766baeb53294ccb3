/** The coder service: one queue of tasks, and coders that take work from it. */
export { CoderLostError, cpuCoder, only, slowedCoder, type Coder } from "./coder";
export { CoderService, type CoderCounts, type CoderServiceOptions, type CoderStage } from "./service";
export type { CoderTask, DecodeTask, EncodeTask, Piece, PieceResult, RecodeTask } from "./task";
