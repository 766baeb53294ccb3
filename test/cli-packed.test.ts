/** The command that `npm install -g` installs from the packed tarball, without our native addons. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import type { DownloadRecord } from "@tributary/contract/schema";
import { repoRoot, sizeBytes, startFleet } from "@tributary/lab-stack";

test("the packed command downloads through proxies from any folder", async () => {
  const folder = mkdtempSync(path.join(os.tmpdir(), "tributary-packed-"));
  const fleet = await startFleet({ proxyCount: 2, ports: "any" });
  try {
    const run = (file: string, ...words: string[]): string =>
      execFileSync(file, words, { cwd: folder, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
    run(process.execPath, path.join(repoRoot, "client/pack.mjs"));
    const packages = path.join(repoRoot, "client/build");
    const tarball = path.join(
      packages,
      readdirSync(packages).find((name) => name.endsWith(".tgz"))!,
    );
    run("npm", "install", "-g", "--prefix", folder, "--no-audit", "--no-fund", tarball);
    const words = ["get", `${fleet.sample.url}/__size/3000000`, "--origo", fleet.origo.url, "--mode", "coded"];
    const record = JSON.parse(run(path.join(folder, "bin/tributary"), ...words, "--json", "-o", "f")) as DownloadRecord;
    expect(record).toMatchObject({ outcome: "complete", fallback: null, engine: expect.stringMatching(/^wasm\//) });
    expect(readFileSync(path.join(folder, "f")).equals(sizeBytes(0, 3_000_000))).toBe(true);
  } finally {
    await fleet.stop();
    rmSync(folder, { recursive: true });
  }
}, 120_000);
