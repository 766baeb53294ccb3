/**
 * A private container engine from this machine's Debian mirror: dockerd, containerd and runc of Debian 12, and the
 * docker client with compose and buildx of Debian 13, because Debian 12 has neither plugin. Nothing is installed. The
 * packages are unpacked into a folder, and apt checks the signature of the index and the digest of each package. The
 * engine has its own network and mount namespaces, so it does not disturb another engine on this machine.
 */
import { spawn } from "node:child_process";
import { createWriteStream, existsSync } from "node:fs";
import { cp, mkdir, readdir, readFile, rm, rmdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { inside } from "./network.mjs";
import { run, sleep, TestFailure, waitFor } from "./run.mjs";

const KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg";
const ENGINE_PACKAGES = [
  "docker.io/bookworm",
  "containerd/bookworm",
  "runc/bookworm",
  "debootstrap/bookworm",
  "docker-cli/trixie",
  "docker-compose/trixie",
  "docker-buildx/trixie",
];

/** Folders that dockerd and containerd always make, wherever their files are. */
const STRAY_FOLDERS = ["/run/containerd", "/run/containerd/s", "/run/docker", "/run/docker/plugins"];

/** The address of the Debian archive that apt uses on this machine. */
export async function debianMirror() {
  const { stdout } = await run("apt-get", ["indextargets", "--format", "$(REPO_URI) $(CODENAME) $(COMPONENT)"]);
  const codename = /^VERSION_CODENAME=(.*)$/m.exec(await readFile("/etc/os-release", "utf8"))?.[1];
  const line = stdout
    .split("\n")
    .map((text) => text.split(" "))
    .find((part) => part[1] === codename && part[2] === "main");
  if (!line)
    throw new TestFailure(
      `apt knows no archive with suite "${codename}" and component "main": ` +
        "run `apt-get update` on a Debian machine first",
    );
  return line[0];
}

/**
 * Unpacks the engine into `folder`, unless an earlier run did.
 * @returns {Promise<{ path: string, plugins: string, debootstrap: string, dockerProxy: string }>}
 */
export async function fetchEngine(folder) {
  const root = path.join(folder, "root");
  const done = path.join(folder, "complete");
  if (!existsSync(done)) {
    await rm(folder, { recursive: true, force: true });
    for (const part of ["state/lists/partial", "cache/archives/partial", "packages", "root"])
      await mkdir(path.join(folder, part), { recursive: true });
    await downloadPackages(folder);
    for (const file of await readdir(path.join(folder, "packages")))
      await run("dpkg", ["-x", path.join(folder, "packages", file), root]);
    for (const part of ["state", "cache", "packages"]) await rm(path.join(folder, part), { recursive: true });
    await writeFile(done, "");
  }
  return {
    path: [path.join(root, "usr/sbin"), path.join(root, "usr/bin"), process.env.PATH].join(":"),
    plugins: path.join(root, "usr/libexec/docker/cli-plugins"),
    debootstrap: path.join(root, "usr"),
    dockerProxy: path.join(root, "usr/sbin/docker-proxy"),
  };
}

async function downloadPackages(folder) {
  const mirror = await debianMirror();
  const sources = ["bookworm", "trixie"].map((suite) => `deb [signed-by=${KEYRING}] ${mirror} ${suite} main\n`);
  await writeFile(path.join(folder, "sources.list"), sources.join(""));
  await writeFile(path.join(folder, "status"), "");
  const settings = {
    "Dir::Etc::SourceList": path.join(folder, "sources.list"),
    "Dir::Etc::SourceParts": "/dev/null",
    "Dir::State": path.join(folder, "state"),
    "Dir::State::status": path.join(folder, "status"),
    "Dir::Cache": path.join(folder, "cache"),
    "APT::Sandbox::User": "root",
    "APT::Get::AllowUnauthenticated": "false",
    "Acquire::AllowInsecureRepositories": "false",
    "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled": "false",
    "Acquire::Languages": "none",
  };
  const options = Object.entries(settings).flatMap(([name, value]) => ["-o", `${name}=${value}`]);
  await run("apt-get", [...options, "update"], { timeoutMs: 300_000 });
  await run("apt-get", [...options, "download", ...ENGINE_PACKAGES], {
    cwd: path.join(folder, "packages"),
    timeoutMs: 600_000,
  });
}

/**
 * Starts dockerd in the server namespace of `network`. It writes only under `folder`.
 * @returns {Promise<{ env: NodeJS.ProcessEnv, stop(): Promise<void> }>} `env` is for the docker client
 */
export async function startEngine(tools, network, folder) {
  const file = (name) => path.join(folder, name);
  await mkdir(file("client/cli-plugins"), { recursive: true });
  await cp(tools.plugins, file("client/cli-plugins"), { recursive: true });
  await writeFile(file("daemon.json"), "{}");
  const daemon = [
    "dockerd",
    "--config-file",
    file("daemon.json"),
    "--data-root",
    file("data"),
    "--exec-root",
    file("exec"),
    "--pidfile",
    file("dockerd.pid"),
    "--exec-opt",
    "native.cgroupdriver=cgroupfs",
    "--cgroup-parent",
    `/${controlGroup(folder)}`,
    "-H",
    `unix://${file("docker.sock")}`,
    "--userland-proxy-path",
    tools.dockerProxy,
  ];
  const strays = STRAY_FOLDERS.filter((stray) => !existsSync(stray));
  const child = spawn(...inside(network.server, "unshare", "--mount", "--propagation", "slave", ...daemon), {
    env: { ...process.env, PATH: tools.path },
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
  });
  const log = createWriteStream(file("dockerd.log"));
  child.stdout.pipe(log);
  child.stderr.pipe(log);
  const ended = new Promise((resolve) => child.once("exit", resolve));
  const env = {
    ...process.env,
    PATH: tools.path,
    DOCKER_HOST: `unix://${file("docker.sock")}`,
    DOCKER_CONFIG: file("client"),
    DOCKER_BUILDKIT: "1",
  };
  const stop = async () => {
    child.kill("SIGTERM");
    await Promise.race([ended, sleep(20_000)]);
    child.kill("SIGKILL");
    for (const stray of strays.reverse()) await rmdir(stray).catch(() => undefined);
  };
  try {
    await waitFor("the container engine to answer", () => run("docker", ["version"], { env }), 30_000);
  } catch (error) {
    await stop();
    const said = (await readFile(file("dockerd.log"), "utf8")).split("\n").slice(-15).join("\n");
    throw new TestFailure(`${error.message}\nlast lines of its log:\n${said}`);
  }
  return { env, stop };
}

/** Stops an engine that an earlier process could not stop. The engine stops its own containers. */
export async function stopEngineByPidFile(folder) {
  const pid = Number(await readFile(path.join(folder, "dockerd.pid"), "utf8").catch(() => "0"));
  const alive = async () => (await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "")).includes(folder);
  if (!pid || !(await alive())) return;
  process.kill(pid, "SIGTERM");
  await waitFor("an engine of an earlier run to end", async () => !(await alive()), 30_000);
}

/** Removes the engine's images, containers, volumes and empty control groups. */
export async function removeEngineFiles(folder) {
  await run(
    "find",
    ["/sys/fs/cgroup", "-depth", "-type", "d", "-path", `*/${controlGroup(folder)}*`, "-exec", "rmdir", "{}", ";"],
    { allowFailure: true },
  );
  await rm(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 500 });
}

const controlGroup = (folder) => `tributary-test-${path.basename(path.dirname(folder))}`;
