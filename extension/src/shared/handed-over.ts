/**
 * Handed over: what the page script kept (kept.ts), for a script that comes into the page later. Such a script imports
 * this module before any other. A page that breaks this keeps the script out, and stays direct.
 */
import { useKept } from "./kept";
import { KEPT_EVENT } from "./names";

/* eslint-disable tributary/primordials -- Nothing is handed over yet. */
document.dispatchEvent(new CustomEvent(KEPT_EVENT, { detail: useKept }));
