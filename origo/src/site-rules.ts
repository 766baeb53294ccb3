/**
 * Site rules: what the operator has written for the extension into `site-rules.json` of the data folder: which
 * addresses are media beyond those that it knows. Read anew whenever asked: clients ask once an hour.
 */
import { readFile } from "node:fs/promises";
import { SiteRules, faultOf } from "@tributary/contract/schema";

const NONE: SiteRules = { rules: [] };

/** Without the file there are none. Throws a sentence when the file holds something else. */
export async function readSiteRules(file: string): Promise<SiteRules> {
  const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) =>
    error.code === "ENOENT" ? undefined : Promise.reject(error),
  );
  if (text === undefined) return NONE;
  const parsed = SiteRules.safeParse(JSON.parse(text));
  if (!parsed.success) throw new Error(`${file}: ${faultOf(parsed.error).message}`);
  return parsed.data;
}
