/**
 * The command that `npm install -g` installs from the packed tarball, without our native addons: it downloads, and it
 * publishes.
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import type { DownloadRecord } from "@tributary/contract/schema";
import { publisherCode, repoRoot, sizeBytes, startFleet } from "@tributary/lab-stack";

test("the packed command downloads through proxies and publishes, from any folder", async () => {
  const folder = mkdtempSync(path.join(os.tmpdir(), "tributary-packed-"));
  const proxyEnv = (index: number): Record<string, string> => ({ LIBRARY_DIR: path.join(folder, `library-${index}`) });
  const fleet = await startFleet({ proxyCount: 2, ports: "any", proxyEnv });
  try {
    const run = (file: string, ...words: string[]): string =>
      execFileSync(file, words, {
        cwd: folder,
        encoding: "utf8",
        stdio: ["ignore", "pipe", "pipe"],
        env: { ...process.env, TRIBUTARY_ORIGO: fleet.origo.url, XDG_CONFIG_HOME: folder, XDG_CACHE_HOME: folder },
      });
    run(process.execPath, path.join(repoRoot, "client/pack.mjs"));
    const packages = path.join(repoRoot, "client/build");
    const tarball = path.join(
      packages,
      readdirSync(packages).find((name) => name.endsWith(".tgz"))!,
    );
    run("npm", "install", "-g", "--prefix", folder, "--no-audit", "--no-fund", tarball);
    const tributary = (...words: string[]): string => run(path.join(folder, "bin/tributary"), ...words);
    const get = (address: string): DownloadRecord =>
      JSON.parse(tributary("get", address, "--mode", "coded", "--json", "-o", "f")) as DownloadRecord;
    const got = (): Buffer => readFileSync(path.join(folder, "f"));
    const coded = { outcome: "complete", fallback: null, engine: expect.stringMatching(/^wasm\//) as unknown };
    expect(get(`${fleet.sample.url}/__size/3000000`)).toMatchObject(coded);
    expect(got().equals(sizeBytes(0, 3_000_000))).toBe(true);

    const film = sizeBytes(0, 2_000_001);
    writeFileSync(path.join(folder, "film.mp4"), film);
    const said = tributary("publish", "film.mp4", "--code", await publisherCode(fleet.origo.url));
    const [, address = ""] = /^play\s+(\S+)/m.exec(said) ?? [];
    expect(tributary("list")).toMatch(/^film +1 +released +1 .* 2 /m);
    expect(tributary("verify", "film")).toMatch(/^proxy-1 .*true$/m);
    expect(get(address)).toMatchObject({ ...coded, vouchedBy: "publisher" });
    expect(got().equals(film)).toBe(true);
    tributary("unpublish", "film");
    expect(() => get(address)).toThrow(/404/);
    expect(() => tributary("verify", "film")).toThrow();
  } finally {
    await fleet.stop();
    rmSync(folder, { recursive: true });
  }
}, 120_000);
