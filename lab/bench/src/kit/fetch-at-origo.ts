/** Has the proxies of emulated links fetch chunks, so that they hold them before a download is measured. */
import { CLIENT_HEADER } from "@tributary/contract";
import type { Links } from "@tributary/lab-links";
import { exitOf } from "./driver";

/** Fetches each URL of its arguments. */
const FETCH_ALL = `(async () => {
  for (const url of process.argv.slice(1)) {
    const response = await fetch(url, { headers: { "${CLIENT_HEADER}": "bench" } });
    if (!response.ok) throw new Error("status " + response.status);
    await response.arrayBuffer();
  }
})()`;

/** Origo's host fetches each of the proxies' `urls`, one after another, so that the clients' links stay free. */
export async function fetchAtOrigo(links: Links, urls: readonly string[]): Promise<void> {
  const words = [process.execPath, "-e", FETCH_ALL, ...urls];
  const code = await exitOf(links.run("origo", words, { stdio: ["ignore", "ignore", "inherit"] }));
  if (code !== 0) throw new Error(`the proxies could not be given the chunks (code ${code})`);
}
