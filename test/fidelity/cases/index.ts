/** All cases of the fidelity suite. */
import type { FidelityCase } from "../kit";
import { CACHES } from "./caches";
import { DOORS } from "./doors";
import { ELEMENTS } from "./elements";
import { HEADS } from "./heads";
import { CHOOSING_HOSTS } from "./hosts";
import { LIMITS } from "./limits";
import { MARKS } from "./marks";
import { STALE } from "./stale";
import { WORKERS } from "./workers";
import { XHRS } from "./xhrs";

export { OPEN } from "./open";

export const CASES: readonly FidelityCase[] = [
  ...STALE,
  ...CHOOSING_HOSTS,
  ...MARKS,
  ...WORKERS,
  ...LIMITS,
  ...DOORS,
  ...HEADS,
  ...CACHES,
  ...XHRS,
  ...ELEMENTS,
];
