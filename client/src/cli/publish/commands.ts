/** `tributary publish`, `list`, `unpublish` and `verify`. */
import { Command, Option } from "commander";
import { Exit, STATUS } from "../exit";
import { origoOption } from "../options";
import { stopped } from "../signals";
import { jsonLine, print, say } from "../terminal";
import { formatBytes, table } from "../view";
import { keyFileDefault, loadKey } from "./key";
import { explained, OrigoLink } from "./origo";
import { publish, type PublishWords } from "./publish";
import { isFaulty, parseAddress, verify, type Checked } from "./verify";

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
    .option("--package", "make HLS and DASH in several qualities of one video first; needs ffmpeg")
    .option("-q, --quiet", "print the addresses and errors only")
    .option("--json", "print one JSON object")
    .action(runPublish);
}

async function runPublish(path: string, words: PublishWords & KeyWords): Promise<void> {
  try {
    const { play, embed, ...rest } = await publish(path, words);
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
        formatBytes(row.servedBytes),
        row.address,
      ]);
      print(`${table([["name", "revision", "state", "files", "bytes", "copies", "served", "address"], ...rows])}\n`);
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

export function verifyCommand(): Command {
  return new Command("verify")
    .description("fetch a publication from every proxy that holds it, and compare with what its publisher signed")
    .argument("<name|address>", "a name of yours, or the address of any publication")
    .addOption(origoOption())
    .addOption(keyOption())
    .option("-q, --quiet", "print faults only")
    .option("--json", "print one JSON object")
    .action(runVerify);
}

async function runVerify(which: string, words: KeyWords & { quiet?: true }): Promise<void> {
  const named = parseAddress(which) ?? { origo: words.origo, key: (await loadKey(words.key)).publicKey, name: which };
  const verified = await explain(verify(named, words.quiet === true));
  const { holders, name, files } = verified;
  const copies = holders.filter((each) => each.holder !== "Origo");
  if (words.json) process.stdout.write(jsonLine(verified));
  else {
    const shown = words.quiet ? holders.filter(isFaulty) : holders;
    const rows = shown.map((each) => [each.holder, String(each.objects), formatBytes(each.bytes), verdictOf(each)]);
    if (rows.length > 0)
      print(`${table([["holder", "objects", "bytes", ""], ...rows])}
`);
  }
  if (copies.length === 0) throw new Exit(STATUS.failed, `No live proxy holds all of ${name}.`);
  const faulty = holders.filter(isFaulty);
  if (faulty.length > 0)
    throw new Exit(STATUS.failed, `${faulty.length} of ${holders.length} holders do not have what was signed.`);
  if (words.quiet) return;
  const all = files === 1 ? "its file is" : `all ${files} files are`;
  say(`${name}: ${copies.length} ${copies.length === 1 ? "copy" : "copies"}, and ${all} what the publisher signed.\n`);
}

function verdictOf({ missing, wrong, error }: Checked): string {
  const parts = [
    ...(wrong.length > 0 ? [`sends false bytes: ${shownOf(wrong)}`] : []),
    ...(missing.length > 0 ? [`lacks ${shownOf(missing)}`] : []),
    ...(error === undefined ? [] : [error]),
  ];
  return parts.length === 0 ? "true" : parts.join("; ");
}

const shownOf = (paths: readonly string[]): string =>
  `${paths.slice(0, 3).join(", ")}${paths.length > 3 ? ` and ${paths.length - 3} more` : ""}`;

async function explain<T>(work: Promise<T>): Promise<T> {
  return work.catch((error: unknown) => {
    throw explained(error);
  });
}
