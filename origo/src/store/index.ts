/** The door of the store. */
export { type Cell, type Database, type Queries, type Row } from "./database";
export { checkArms } from "./arms";
export { queryChart } from "./charts";
export { queryDifference } from "./difference";
export { queryDownloads } from "./downloads-query";
export { isDiskFull, QueryFault } from "./faults";
export { exportCsv, importFile, withParquet } from "./files";
export { FIELDS } from "./fields";
export { IntakeFull } from "./intake";
export { DiskFull, Store, type Page } from "./store";
