/** `tributary publish`, `list`, `unpublish` and `verify`. */
import { Command, Option } from "commander";
import { origoOption } from "../options";
import { stopped } from "../signals";
import { jsonLine, print, say } from "../terminal";
import { formatBytes, table } from "../view";
import { keyFileDefault, loadKey, loadOrMakeKey } from "./key";
import { explained, OrigoLink } from "./origo";
import { publish, type PublishWords } from "./publish";

interface KeyWords {
  key: string;
  origo: string;
  json?: true;
}

function keyOption(): Option {
  return new Option("--key <file>", "your publisher's key").env("TRIBUTARY_KEY").default(keyFileDefault());
}

export function publishCommand(): Command {
  return new Command("publish")
    .description("publish a file or a folder: everyone can play it from Origo's proxies")
    .argument("<path>", "a video, or a folder with HLS, DASH or any other files")
    .option("--name <name>", "the name in the address (default: that of the file or folder)")
    .addOption(origoOption())
    .addOption(keyOption())
    .option("--code <code>", "the code from Origo's operator, the first time")
    .option("-q, --quiet", "print the addresses and errors only")
    .option("--json", "print one JSON object")
    .action(runPublish);
}

async function runPublish(path: string, words: PublishWords & KeyWords): Promise<void> {
  const key = await loadOrMakeKey(words.key);
  try {
    const { play, embed, ...rest } = await publish(path, words, key);
    if (words.json) return void process.stdout.write(jsonLine({ play, embed, ...rest }));
    print(`play   ${play}\nembed  ${embed}\n`);
  } catch (error) {
    if (stopped.aborted) say("Interrupted. Nothing new is published. Run the same command again to go on.\n");
    throw explained(error);
  }
}

export function listCommand(): Command {
  return new Command("list")
    .description("list what you have published")
    .addOption(origoOption())
    .addOption(keyOption())
    .option("--json", "print one JSON object")
    .action(async ({ key, origo, json }: KeyWords) => {
      const publications = await explain(new OrigoLink(origo, await loadKey(key)).list());
      if (json) return void process.stdout.write(jsonLine({ publications }));
      if (publications.length === 0) return say("You have published nothing here.\n");
      const rows = publications.map((row) => [
        row.name,
        String(row.revision),
        row.state === "pending"
          ? "not finished"
          : row.missingObjects > 0
            ? `${row.missingObjects} missing`
            : "released",
        String(row.files),
        formatBytes(row.bytes),
        String(row.holders.length),
        row.address,
      ]);
      print(`${table([["name", "revision", "state", "files", "bytes", "copies", "address"], ...rows])}\n`);
    });
}

export function unpublishCommand(): Command {
  return new Command("unpublish")
    .description("withdraw a publication: Origo and its proxies forget it")
    .argument("<name>", "its name, as `tributary list` shows it")
    .addOption(origoOption())
    .addOption(keyOption())
    .action(async (name: string, { key, origo }: KeyWords) => {
      await explain(new OrigoLink(origo, await loadKey(key)).unpublish(name));
      say(`${name} is withdrawn. Players that have parts of it keep them.\n`);
    });
}

async function explain<T>(work: Promise<T>): Promise<T> {
  return work.catch((error: unknown) => {
    throw explained(error);
  });
}
