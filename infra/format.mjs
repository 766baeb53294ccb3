/**
 * Formats every TypeScript, JavaScript, CSS, C++ and Rust file of the repository.
 *
 *   node infra/format.mjs [--check]
 *
 * With --check no file is changed, and the exit status is 1 if a file would change. Rust files are formatted if cargo
 * is installed. The options are in .prettierrc.json, .clang-format and rustfmt.toml.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { root } from "./setup.mjs";

const isCheck = process.argv.includes("--check");
const tracked = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard"], {
  cwd: root,
  encoding: "utf8",
}).split("\n");
const cppFiles = tracked.filter((file) => /\.(cc|h|cu)$/.test(file));
const crates = tracked.filter((file) => file.endsWith("Cargo.toml"));
const node = process.execPath;

/** Each formatter's name and command. */
const formatters = [
  [
    "prettier",
    [node, "node_modules/prettier/bin/prettier.cjs", "--log-level", "warn", isCheck ? "--check" : "--write", "."],
  ],
  [
    "clang-format",
    [node, "node_modules/.bin/clang-format", ...(isCheck ? ["--dry-run", "-Werror"] : ["-i"]), ...cppFiles],
  ],
];
if (spawnSync("cargo", ["fmt", "--version"]).status === 0) {
  for (const crate of crates)
    formatters.push(["rustfmt", ["cargo", "fmt", "--manifest-path", crate, ...(isCheck ? ["--check"] : [])]]);
}

for (const [name, [program, ...words]] of formatters) {
  const { status } = spawnSync(program, words, { cwd: root, stdio: "inherit" });
  if (status === 0) continue;
  console.error(
    isCheck ? `${name} would change files: run npm run format` : `${name} failed with exit status ${status}`,
  );
  process.exitCode = 1;
}
