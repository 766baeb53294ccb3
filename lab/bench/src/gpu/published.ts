/** The run of the GPU bench that the documents quote. */
import { readFileSync } from "node:fs";
import path from "node:path";
import { repoRoot } from "@tributary/lab-stack";
import type { Row } from "./picture";

const PUBLISHED = path.join(repoRoot, "lab/bench/data/gpu.json");

export const publishedRun = (): { facts: Record<string, string>; rows: Row[] } =>
  JSON.parse(readFileSync(PUBLISHED, "utf8")) as { facts: Record<string, string>; rows: Row[] };
