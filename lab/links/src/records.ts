/** Reads the records that Origo holds in its host of emulated links. */
import type { DownloadRecord } from "@tributary/contract/schema";
import type { Links } from "./links";

const READ_RECORDS = `(async () => {
  const [url, cookie] = process.argv.slice(1);
  const answer = await fetch(url + "/v1/records?limit=500", { headers: { cookie } });
  if (!answer.ok) throw new Error("Origo answered " + answer.status);
  process.stdout.write(await answer.text());
})();`;

/** Up to 500 of the latest records. The scenario must have services. */
export async function recordsOnLinks(links: Links): Promise<DownloadRecord[]> {
  const child = links.run(
    "origo",
    [process.execPath, "-e", READ_RECORDS, links.env["ORIGO_URL"]!, links.env["ORIGO_COOKIE"]!],
    { stdio: ["ignore", "pipe", "inherit"] },
  );
  let text = "";
  child.stdout!.on("data", (piece: Buffer) => (text += piece.toString()));
  const code = await new Promise((resolve) => child.once("close", resolve));
  if (code !== 0) throw new Error(`Origo's records could not be read (code ${code})`);
  return (JSON.parse(text) as { records: DownloadRecord[] }).records;
}
