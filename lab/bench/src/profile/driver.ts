/**
 * The Node client whose processor time is profiled. Downloads a URL a number of times in mode `coded` and prints one
 * record a line. After the first download, on new sessions, it waits until the profiles are emptied.
 */
import { createNodeClient } from "@tributary/client/node";
import { PAUSE_MS } from "./profile";

const [origoUrl = "", url = "", connections = "", count = ""] = process.argv.slice(2);

async function main(): Promise<void> {
  const client = createNodeClient({ origoUrl, transport: "webtransport", reportRecords: false });
  for (let done = 0; done < Number(count); done++) {
    const download = client.get(url, { mode: "coded", connections: Number(connections) });
    for await (const piece of download.body) void piece;
    console.log(JSON.stringify(await download.record));
    if (done === 0) await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
  await client.close();
  process.exit(0);
}

void main();
