/** `tributary proxies`: lists the proxies that Origo knows. */
import { Command } from "commander";
import { createNodeClient } from "../node";
import { unlessStopped } from "./signals";
import { origoOption } from "./options";
import { jsonLine, print, say } from "./terminal";

export function proxiesCommand(): Command {
  return new Command("proxies")
    .description("list the proxies that Origo knows: name, address and id")
    .addOption(origoOption())
    .option("--json", "print one JSON object")
    .action(async ({ origo, json }: { origo: string; json?: true }) => {
      const client = createNodeClient({ origoUrl: origo, source: "cli", reportRecords: false });
      try {
        const proxies = await unlessStopped(client.proxies());
        if (json) process.stdout.write(jsonLine({ proxies }));
        else print(proxies.map(({ name, url, id }) => `${name}\t${url}\t${id}\n`).join(""));
        if (!json && proxies.length === 0) say("No proxy is live.\n");
      } finally {
        await client.close();
      }
    });
}
