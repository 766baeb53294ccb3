/**
 * `npm run pack:cli`: makes client/build/tributary-VERSION.tgz, which `npm install -g` installs as the command
 * `tributary`. It holds the compiled packages of this repository. npm gets the other ones from its registry. There are
 * no native addons of ours in it: coding uses WebAssembly, and packets use WebRTC by node-datachannel.
 */
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

const here = path.dirname(fileURLToPath(import.meta.url));
const root = path.dirname(here);
const stage = path.join(here, "build/package");
const read = (folder) => JSON.parse(readFileSync(path.join(root, folder, "package.json"), "utf8"));

/** The client and the packages that it needs, by name: their folders. */
function neededFolders(folder = "client", found = new Map()) {
  const { name, dependencies } = read(folder);
  found.set(name, folder);
  for (const needed of Object.keys(dependencies ?? {})) {
    const [, next] = /^@tributary\/(.+)$/.exec(needed) ?? [];
    if (next !== undefined && !found.has(needed)) neededFolders(next, found);
  }
  return found;
}

/**
 * Compiled code and the WebAssembly modules. The outer package alone names dependencies, because npm takes those of a
 * bundled package as bundled too.
 */
function copyPackage(name, folder) {
  const to = path.join(stage, "node_modules", name);
  const { main, exports, version, license } = read(folder);
  mkdirSync(to, { recursive: true });
  writeFileSync(path.join(to, "package.json"), json({ name, version, license, main, exports }));
  const filter = (file) => !/\.(map|d\.ts)$/.test(file);
  for (const part of ["dist", "module"].map((each) => path.join(root, folder, each)))
    if (existsSync(part)) cpSync(part, path.join(to, path.basename(part)), { recursive: true, filter });
}

const json = (value) => `${JSON.stringify(value, null, 2)}\n`;

const folders = neededFolders();
const manifest = read("client");
const others = [...folders.values()].flatMap((folder) =>
  Object.entries(read(folder).dependencies ?? {}).filter(([name]) => !folders.has(name)),
);
rmSync(path.join(here, "build"), { recursive: true, force: true });
for (const [name, folder] of folders) copyPackage(name, folder);
writeFileSync(
  path.join(stage, "package.json"),
  json({
    name: "tributary",
    version: manifest.version,
    description: "Downloads through several proxies at once.",
    license: manifest.license,
    engines: read(".").engines,
    bin: { tributary: "node_modules/@tributary/client/dist/cli.js" },
    dependencies: Object.fromEntries([
      ...[...folders].map(([name, folder]) => [name, read(folder).version]),
      ...others,
    ]),
    bundleDependencies: [...folders.keys()],
  }),
);
cpSync(path.join(root, "LICENSE"), path.join(stage, "LICENSE"));
const npm = process.env.npm_execpath ? [process.execPath, process.env.npm_execpath] : ["npm"];
execFileSync(npm[0], [...npm.slice(1), "pack", "--silent", "--pack-destination", ".."], {
  cwd: stage,
  stdio: "inherit",
});
