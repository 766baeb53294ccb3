/** Door of the store. */
export { type Cell, type Database, type Queries, type Row } from "./database";
export { IntakeFull } from "./intake";
export { Store, type Page } from "./store";
