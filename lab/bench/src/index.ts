/** Downloads over emulated links, for tests that look at them from outside. */
export { linksOf, makeBox } from "./campaign/boxes";
export type { Box } from "./campaign/boxes";
export { goodputOf } from "./campaign/rows";
export type { Sample } from "./campaign/rows";
export { startStack } from "./campaign/stack";
export type { Stack } from "./campaign/stack";
