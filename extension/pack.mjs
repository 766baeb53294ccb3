/**
 * `npm run pack:extension`: makes the packages for the stores. They hold the code that webpack built, a manifest that
 * asks for each site, and no demo settings. The same sources give the same bytes everywhere: names are sorted, the date
 * is fixed, and there are no attributes. Prints the SHA-256 of each zip.
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { createRequire } from "node:module";
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import zlib from "node:zlib";

const require = createRequire(import.meta.url);
const { manifestText } = require("./manifest.js");
const { version } = require("./package.json");
const here = path.dirname(fileURLToPath(import.meta.url));

/** [name, bytes] of each file in a store package. */
export function storeFiles(browser) {
  const folder = path.join(here, "dist", browser);
  const names = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return names
    .map((entry) =>
      path
        .relative(folder, path.join(entry.parentPath ?? entry.path, entry.name))
        .split(path.sep)
        .join("/"),
    )
    .filter((name) => name !== "defaults.json")
    .sort()
    .map((name) => [
      name,
      name === "manifest.json" ? Buffer.from(manifestText(browser, "asked")) : readFileSync(path.join(folder, name)),
    ]);
}

/** 1 January 1980, the format's first day. */
const DATE = 0x0021;
const VERSION_NEEDED = 20;
const DEFLATED = 8;
const UTF8_NAMES = 0x0800;

/** A zip archive of [name, bytes] in the given order (APPNOTE 6.3.10, §4.3). */
export function zip(files) {
  const locals = [];
  const centrals = [];
  let offset = 0;
  for (const [name, bytes] of files) {
    const nameBytes = Buffer.from(name);
    const packed = zlib.deflateRawSync(bytes, { level: 9 });
    const common = Buffer.alloc(26);
    [VERSION_NEEDED, UTF8_NAMES, DEFLATED, 0, DATE].forEach((value, index) => common.writeUInt16LE(value, 2 * index));
    common.writeUInt32LE(zlib.crc32(bytes), 10);
    common.writeUInt32LE(packed.length, 14);
    common.writeUInt32LE(bytes.length, 18);
    common.writeUInt16LE(nameBytes.length, 22);
    locals.push(uint32(0x04034b50), common, nameBytes, packed);
    const rest = Buffer.alloc(14);
    rest.writeUInt32LE(offset, 10);
    centrals.push(uint32(0x02014b50), Buffer.from([VERSION_NEEDED, 0]), common, rest, nameBytes);
    offset += 4 + common.length + nameBytes.length + packed.length;
  }
  const directory = Buffer.concat(centrals);
  const end = Buffer.alloc(18);
  end.writeUInt16LE(files.length, 4);
  end.writeUInt16LE(files.length, 6);
  end.writeUInt32LE(directory.length, 8);
  end.writeUInt32LE(offset, 12);
  return Buffer.concat([...locals, directory, uint32(0x06054b50), end]);
}

function uint32(value) {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

/** Writes the files unpacked, for loading or linting. */
function writeFolder(folder, files) {
  rmSync(folder, { recursive: true, force: true });
  for (const [name, bytes] of files) {
    mkdirSync(path.dirname(path.join(folder, name)), { recursive: true });
    writeFileSync(path.join(folder, name), bytes);
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  execFileSync(
    process.execPath,
    [require.resolve("webpack/bin/webpack.js"), "--config", path.join(here, "webpack.config.js")],
    { cwd: here, stdio: ["ignore", "ignore", "inherit"] },
  );
  for (const browser of ["chromium", "firefox"]) {
    const files = storeFiles(browser);
    writeFolder(path.join(here, "dist", `store-${browser}`), files);
    const file = path.join(here, "dist", `tributary-${browser}-${version}.zip`);
    const bytes = zip(files);
    writeFileSync(file, bytes);
    const digest = createHash("sha256").update(bytes).digest("hex");
    console.log(`${path.relative(process.cwd(), file)}: ${bytes.length} bytes, SHA-256 ${digest}`);
  }
}
