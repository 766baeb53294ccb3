/** One source, many destinations: graphs, flows, trees, packings and network codes. No clock, no sockets. */
export { CODE_DESTINATIONS_MAX, inUnits, invert, networkCode, type CodedLink, type NetworkCode } from "./code";
export { disjointPaths, maxFlow } from "./flow";
export { Graph, graphOf, TopologyError, type Link, type Topology } from "./graph";
export { packTrees, type LinearSolver, type Packing } from "./packing";
export { EXACT_DESTINATIONS_MAX, greedyTree, leastTree } from "./steiner";
export { taskOf, type Task, type Transfer } from "./transfer";
