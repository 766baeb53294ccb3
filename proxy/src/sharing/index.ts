/** Reading chunks from their origins together with other proxies: protocol.md §11. */
export { Peers } from "./peers";
export { withReads } from "./read-metrics";
export { SharedChunks } from "./shared-chunks";
