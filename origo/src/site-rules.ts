/**
 * Site rules: the operator's file `site-rules.json` in the data folder. It tells the extension about further addresses
 * that are media. The file is read at each request; clients ask once an hour.
 */
import { readFile } from "node:fs/promises";
import { faultOf } from "@tributary/contract/fault";
import { SiteRules } from "@tributary/contract/schema";

const NONE: SiteRules = { rules: [] };

/** Without the file there are no rules. Throws when the file holds anything else than rules. */
export async function readSiteRules(file: string): Promise<SiteRules> {
  const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) =>
    error.code === "ENOENT" ? undefined : Promise.reject(error),
  );
  if (text === undefined) return NONE;
  const parsed = SiteRules.safeParse(JSON.parse(text));
  if (!parsed.success) throw new Error(`${file}: ${faultOf(parsed.error).message}`);
  return parsed.data;
}
