/**
 * `npm run test:compose`: tests infra/compose.yaml on a bare Debian machine, as root. It fetches a container engine,
 * makes stand-ins for the base images, starts the fleet, and plays the sample's hls.js page in Chromium, inside a
 * network namespace that reaches only the published ports. Then it kills a proxy, waits for its return, and takes
 * everything down. It does not test the official base images. Its parts are in infra/docker/. It leaves installed
 * Debian packages and .cache/compose-test behind; the latter may be deleted.
 */
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { chmod, cp, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { makeBaseImages } from "./docker/base-image.mjs";
import { fetchEngine, removeEngineFiles, startEngine, stopEngineByPidFile } from "./docker/engine.mjs";
import { allowOnly, createNetwork, describeNetwork, inside, removeNetwork } from "./docker/network.mjs";
import { run, sleep, Steps, stopRunning, TestFailure, waitFor } from "./docker/run.mjs";

const ROOT = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "..");
const CACHE = path.join(ROOT, ".cache/compose-test");
const WORK_ROOT = "/var/lib/tributary-test";
const COMPOSE = ["compose", "-f", path.join(ROOT, "infra/compose.yaml")];
const PROXY_COUNT = 4;
const ORIGO_PORT = 7600;
const PROXY_PORTS = { first: 7611, last: 7642 };
const SAMPLE_PORT = 7680;
const MODE = "coded";
/** The status when the machine cannot run the test. .ci/run tells it from a failure. */
const EXIT_CANNOT_RUN = 3;
/** The needed programs, each with its Debian package. */
const NEEDED = [
  ["ip", "iproute2"],
  ["iptables", "iptables"],
  ["nsenter", "util-linux"],
  ["wget", "wget"],
  ["tar", "tar"],
  ["gpgv", "gpgv"],
  ["xz", "xz-utils"],
];

const steps = new Steps();
const undo = [];
let undoing;

/** Runs the undo list once, last entry first. A failing entry is reported and does not stop the others. */
function tearDown() {
  undoing ??= (async () => {
    for (const action of undo.reverse()) {
      await action().catch((error) => console.error(`clean-up: ${error.message}`));
    }
  })();
  return undoing;
}

async function main() {
  expectDebianAndRoot();
  await clearDeadRuns();
  const id = process.pid.toString(36);
  const work = path.join(WORK_ROOT, id);
  const network = describeNetwork(id, process.pid % 256);
  await steps.step("Debian packages that the test needs", installNeeded);
  await steps.step("this machine can run containers", expectContainersArePossible);
  await steps.step("the project is built", buildProject);
  const tools = await steps.step("container engine fetched from the Debian mirror", () =>
    fetchEngine(path.join(CACHE, "engine")),
  );

  await steps.step("namespaces `server` and `viewer`", () => makeNetwork(network, work));
  const engine = await steps.step("container engine started", () => makeEngine(tools, network, work));
  await steps.step("stand-in base images", () => makeBaseImages(tools, engine, CACHE, work));
  const fleet = makeFleet(engine, network);
  await steps.step(`docker compose up, ${PROXY_COUNT} proxies, healthy`, fleet.up);
  const sampleUrl = await steps.step("sample origin", () => startSample(network));

  await steps.step("Origo lists each proxy under the port that it was published on", fleet.expectRegistered);
  await steps.step("the viewer reaches the published ports and nothing else", () =>
    checkFilter(fleet, network, sampleUrl),
  );
  const play = { fleet, network, work, sampleUrl };
  await steps.step("a page plays, and every segment comes through the proxies with the origin's bytes", () =>
    playPage(play, 10, async () => {}),
  );
  await steps.step("playback goes on when one proxy is killed (-9)", () => playPage(play, 10, fleet.killOne));
  await steps.step("the killed proxy is back under a published port", fleet.expectRevived);
  await steps.step("a page plays through the fleet with the revived proxy in it", () =>
    playPage(play, 10, async () => {}, PROXY_COUNT),
  );
  await steps.step("Origo keeps its records over a restart", fleet.restartOrigo);
  await steps.step("compose warns of a misspelt name in .env, and only settings-check is given that file", () =>
    fleet.misspell(path.join(work, "settings")),
  );
  await steps.step("docker compose down -v leaves no container, network or volume", fleet.down);
  await steps.step("clean-up leaves no namespace, process, mount or file", async () => {
    await tearDown();
    await expectNothingLeft(network, work);
  });
}

/** This machine cannot run the test, whatever the state of the product. */
class CannotRun extends TestFailure {
  constructor(reason) {
    super(
      "npm run test:compose needs root on a Debian machine with apt that lets it make network namespaces, " +
        `firewall rules and control groups (for a container engine); ${reason}.`,
    );
  }
}

function expectDebianAndRoot() {
  if (process.platform !== "linux") throw new CannotRun(`this is ${process.platform}`);
  if (process.getuid() !== 0) throw new CannotRun("you are not root");
  if (!existsSync("/usr/bin/apt-get")) throw new CannotRun("there is no apt-get");
}

/** Tries, in namespaces that end with the trial, what a container engine does. */
async function expectContainersArePossible() {
  const trials = [
    ["mkdir /sys/fs/cgroup/tributary-test-trial && rmdir /sys/fs/cgroup/tributary-test-trial", "control groups"],
    ["unshare --net --mount true", "namespaces"],
    ["unshare --net iptables -w -t nat -A POSTROUTING -j MASQUERADE", "firewall rules"],
  ];
  for (const [command, what] of trials) {
    const { code, stderr } = await run("sh", ["-c", command], { allowFailure: true });
    if (code !== 0) throw new CannotRun(`this machine refuses ${what} (${stderr.trim()})`);
  }
}

async function installNeeded() {
  const missing = [];
  for (const [program, name] of NEEDED)
    if ((await run("which", [program], { allowFailure: true })).code !== 0) missing.push(name);
  if ((await run("ldconfig", ["-p"])).stdout.includes("libdevmapper.so") === false) missing.push("libdevmapper1.02.1");
  if (!existsSync("/usr/share/keyrings/debian-archive-keyring.gpg")) missing.push("debian-archive-keyring");
  if (missing.length === 0) return "all there";
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  await run("apt-get", ["update"], { timeoutMs: 300_000 });
  await run("apt-get", ["install", "-y", "--no-install-recommends", ...missing], { env, timeoutMs: 900_000 });
  return `installed ${missing.join(", ")}`;
}

/** The sample origin, the extension and Chromium run on the host. The images build their own copies. */
async function buildProject() {
  await run(process.execPath, ["infra/setup.mjs", "--browser"], { cwd: ROOT, timeoutMs: 1_200_000 });
}

async function makeNetwork(network, work) {
  await mkdir(work, { recursive: true, mode: 0o700 });
  undo.push(() => rm(work, { recursive: true, force: true }));
  let forwardBefore;
  undo.push(() => removeNetwork(network, forwardBefore));
  forwardBefore = await createNetwork(network);
  await writeFile(path.join(work, "owner.json"), JSON.stringify({ pid: process.pid, network, forwardBefore }));
  const proxyPorts = `${PROXY_PORTS.first}:${PROXY_PORTS.last}`;
  await allowOnly(network, { tcp: [String(ORIGO_PORT), proxyPorts, String(SAMPLE_PORT)], udp: [proxyPorts] });
}

async function makeEngine(tools, network, work) {
  const folder = path.join(work, "engine");
  undo.push(() => removeEngineFiles(folder));
  await mkdir(folder, { recursive: true });
  const engine = await startEngine(tools, network, folder);
  undo.push(engine.stop);
  return engine;
}

/** Removes the engine, namespaces and files of runs that were killed. */
async function clearDeadRuns() {
  for (const name of existsSync(WORK_ROOT) ? await readdir(WORK_ROOT) : []) {
    const work = path.join(WORK_ROOT, name);
    const owner = await readFile(path.join(work, "owner.json"), "utf8").then(JSON.parse, () => undefined);
    if (!owner || existsSync(`/proc/${owner.pid}`)) continue;
    await stopEngineByPidFile(path.join(work, "engine"));
    await removeNetwork(owner.network, owner.forwardBefore);
    await removeEngineFiles(path.join(work, "engine"));
    await rm(work, { recursive: true, force: true });
    console.log(`removed the rest of a killed run (${name})`);
  }
}

/** The fleet under test: starts it, asks it, kills a proxy and takes it down. */
function makeFleet(engine, network) {
  const origoUrl = `http://${network.uplinkAddress}:${ORIGO_PORT}`;
  const env = {
    ...engine.env,
    PUBLIC_ADDRESS: network.serverAddress,
    ALLOW_HOSTS: network.serverAddress,
    ALLOW_PRIVATE_HOSTS: `${network.serverAddress}:${SAMPLE_PORT}`,
  };
  const docker = (...args) => run("docker", args, { env, cwd: ROOT, timeoutMs: 1_200_000 });
  let cookie = "";
  const getJson = async (pathname) =>
    (await fetch(origoUrl + pathname, { headers: { cookie }, signal: AbortSignal.timeout(5000) })).json();
  /** Signs in like an operator, with the one-time link in Origo's log. */
  const signIn = async () => {
    const { stdout } = await docker(...COMPOSE, "logs", "--no-log-prefix", "origo");
    const token = /#setup=([\w-]+)/.exec(stdout)?.[1];
    if (token === undefined) throw new TestFailure(`Origo printed no one-time link:\n${stdout}`);
    const refused = await fetch(`${origoUrl}/v1/records`);
    if (refused.status !== 401)
      throw new TestFailure(`without signing in /v1/records answered ${refused.status}, expected 401`);
    const response = await fetch(`${origoUrl}/v1/setup`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ token, name: "admin", password: "a password for this test" }),
    });
    if (!response.ok) throw new TestFailure(`the one-time link was refused: ${await response.text()}`);
    cookie = response.headers.get("set-cookie").split(";")[0];
  };
  const proxies = async () => {
    const ids = (await docker(...COMPOSE, "ps", "-q", "proxy")).stdout.split("\n").filter(Boolean);
    return ids.length === 0 ? [] : JSON.parse((await docker("inspect", ...ids)).stdout);
  };
  const publishedPort = (container) => container.NetworkSettings.Ports["7610/tcp"]?.[0]?.HostPort;
  const registeredAsPublished = async () => {
    const containers = await proxies();
    const published = containers
      .map((container) => `http://${network.serverAddress}:${publishedPort(container)}`)
      .sort();
    const listed = (await getJson("/v1/proxies?count=32")).proxies.map((proxy) => proxy.url).sort();
    if (published.length !== PROXY_COUNT || published.join() !== listed.join())
      throw new Error(`published ${published}; listed ${listed}`);
    return listed.map((url) => new URL(url).port).join(" ");
  };
  let killed;
  return {
    origoUrl,
    proxies,
    getJson,
    publicOrigoUrl: `http://${network.serverAddress}:${ORIGO_PORT}`,
    up: async () => {
      undo.push(
        async () =>
          void (await run("docker", [...COMPOSE, "down", "-v", "-t", "5"], {
            env,
            allowFailure: true,
            timeoutMs: 60_000,
          })),
      );
      try {
        await docker(...COMPOSE, "up", "-d", "--build", "--scale", `proxy=${PROXY_COUNT}`, "--wait", "--quiet-pull");
      } catch (error) {
        const logs = await run("docker", [...COMPOSE, "logs", "--tail", "20"], { env, allowFailure: true });
        throw new TestFailure(`${error.message}\nlast lines of the containers:\n${logs.stdout}`);
      }
      await signIn();
    },
    expectRegistered: () => waitFor("every proxy at Origo under its published port", registeredAsPublished, 20_000),
    killOne: async () => {
      killed = (await proxies())[0];
      process.kill(killed.State.Pid, "SIGKILL");
    },
    expectRevived: async () => {
      await waitFor("the container to be restarted", async () => {
        const now = (await proxies()).find((container) => container.Id === killed.Id);
        return now.State.Running && now.State.Pid !== killed.State.Pid && now.State.Health.Status === "healthy";
      });
      const ports = await waitFor("the proxy to register again", registeredAsPublished, 20_000);
      const now = (await proxies()).find((container) => container.Id === killed.Id);
      return `port ${publishedPort(killed)} before, ${publishedPort(now)} now; fleet ${ports}`;
    },
    restartOrigo: async () => {
      const before = (await getJson("/v1/records?limit=500")).records.length;
      await docker(...COMPOSE, "restart", "origo");
      await waitFor(
        "Origo to answer with its records",
        async () => (await getJson("/v1/records?limit=500")).records.length >= before,
      );
      await waitFor("the proxies to register again", registeredAsPublished, 30_000);
      return `${before} records`;
    },
    misspell: async (folder) => {
      const other = [...COMPOSE, "-p", "tributary-misspelt"];
      await mkdir(folder);
      await writeFile(path.join(folder, ".env"), "RETENTION_DAY=3\nSTRANGERS_PASSWORD=hush\n");
      const ports = { ORIGO_PORT: "7690", PROXY_PORTS: "7691-7693" };
      const here = { env: { ...env, ...ports, PWD: folder }, cwd: folder, timeoutMs: 120_000 };
      const { stderr } = await run("docker", [...other, "up", "-d"], here);
      if (!/"settings-check" didn't complete successfully/.test(stderr))
        throw new TestFailure(`compose did not warn:\n${stderr}`);
      const { stdout, stderr: told } = await run("docker", [...other, "logs", "--no-log-prefix"], here);
      const line = "RETENTION_DAY is not a variable of compose.yaml: did you mean RETENTION_DAYS?";
      if (!(stdout + told).includes(line)) throw new TestFailure(`nothing named it: ${stdout}${told}`);
      const ids = (await run("docker", [...other, "ps", "-a", "-q"], here)).stdout.split("\n").filter(Boolean);
      const containers = JSON.parse((await docker("inspect", ...ids)).stdout);
      const given = containers.filter(({ Config }) => Config.Env.some((each) => each.includes("hush")));
      const names = given.map(({ Config }) => Config.Labels["com.docker.compose.service"]);
      if (names.join() !== "settings-check" || containers.length !== 3)
        throw new TestFailure(`of ${containers.length} containers these have the file's values: ${names}`);
      await run("docker", [...other, "down", "-v"], here);
    },
    down: async () => {
      await docker(...COMPOSE, "down", "-v");
      const left = [];
      for (const [kind, ...args] of [["container", "-a"], ["network", "--filter", "type=custom"], ["volume"]]) {
        const names = (await docker(kind, "ls", "-q", ...args)).stdout.trim();
        if (names) left.push(`${kind}: ${names}`);
      }
      if (left.length > 0) throw new TestFailure(`left behind: ${left.join("; ")}`);
    },
  };
}

/**
 * Starts the sample origin beside the containers, on the server's own address.
 */
async function startSample(network) {
  const env = { ...process.env, HOST: "0.0.0.0", PORT: String(SAMPLE_PORT) };
  const [program, args] = inside(network.server, process.execPath, path.join(ROOT, "lab/stack/dist/sample/main.js"));
  const child = spawn(program, args, { env, stdio: ["ignore", "ignore", "inherit"] });
  undo.push(async () => void child.kill("SIGTERM"));
  await waitFor(
    "the sample origin to answer",
    () => fetch(`http://${network.uplinkAddress}:${SAMPLE_PORT}/`, { signal: AbortSignal.timeout(1000) }),
    20_000,
  );
  return `http://${network.serverAddress}:${SAMPLE_PORT}`;
}

/** Connects from the viewer. Published ports must accept, and ports that exist without being published must not. */
async function checkFilter(fleet, network, sampleUrl) {
  const container = Object.values((await fleet.proxies())[0].NetworkSettings.Networks)[0];
  const listed = (await fleet.getJson("/v1/proxies?count=32")).proxies.map((proxy) => new URL(proxy.url).host);
  const open = [new URL(sampleUrl).host, new URL(fleet.publicOrigoUrl).host, ...listed];
  const shut = [
    `${container.IPAddress}:7610`,
    `${container.Gateway}:${ORIGO_PORT}`,
    `${network.uplinkAddress}:${ORIGO_PORT}`,
    `${network.hostAddress}:${ORIGO_PORT}`,
  ];
  const script = `const net = require("node:net");
    const opens = (door) => new Promise((resolve) => {
      const [host, port] = door.split(":");
      const socket = net.connect({ host, port: Number(port), timeout: 1500 }, () => resolve(true));
      for (const event of ["error", "timeout"]) socket.on(event, () => resolve(false));
    });
    Promise.all(process.argv.slice(1).map(opens)).then((answers) => {
      console.log(JSON.stringify(answers));
      process.exit(0);
    });`;
  const { stdout } = await run(...inside(network.viewer, process.execPath, "-e", script, ...open, ...shut));
  const answers = JSON.parse(stdout);
  const wrong = [...open, ...shut].filter((_, index) => answers[index] !== index < open.length);
  if (wrong.length > 0)
    throw new TestFailure(
      `wrong for ${wrong.join(", ")} (should be open: ${open.join(", ")}; shut: ${shut.join(", ")})`,
    );
  return `${open.length} open, ${shut.length} shut`;
}

/**
 * Plays `seconds` of hls.html in a fresh Chromium in the viewer's namespace and calls `meanwhile` after the first
 * third. Then it checks every segment against the file on disk, Origo's records and the origin's log.
 */
async function playPage({ fleet, network, work, sampleUrl }, seconds, meanwhile, proxiesExpected = 2) {
  const lab = createRequire(path.join(ROOT, "lab/stack/package.json"));
  const { carriedSegments, carryFaults, samplePageState, segmentMismatch } = lab("./dist/index.js");
  const sinceMs = Date.now();
  const { browser, close } = await openViewer(lab, network, work, { origoUrl: fleet.publicOrigoUrl, sampleUrl });
  let state;
  let records;
  let log;
  try {
    const page = await browser.newPage();
    await page.goto(`${sampleUrl}/hls.html`, { waitUntil: "domcontentloaded", timeout: 30_000 });
    const playedTo = (time) =>
      waitFor(
        `the video to reach ${time} s`,
        async () => {
          state = await samplePageState(page);
          if (state.currentTime < time)
            throw new Error(
              `at ${state.currentTime} s; segments ${state.segments.length}; ` +
                `errors: ${state.errors.join("; ") || "none"}`,
            );
          return true;
        },
        45_000,
        200,
      );
    await playedTo(seconds / 3);
    await meanwhile();
    await playedTo(seconds);
    log = await (await fetch(`http://${network.uplinkAddress}:${SAMPLE_PORT}/__log?since=${sinceMs}`)).json();
    records = await recordsSince(fleet, sinceMs, carriedSegments(state.segments, log));
  } finally {
    await close();
  }
  const problems = [
    ...state.segments.map((segment) => segmentMismatch(segment)),
    ...carryFaults(state.segments, records, log, MODE),
  ].filter(Boolean);
  if (problems.length > 0) throw new TestFailure(problems.join("\n"));
  const used = new Set(
    records.flatMap((record) => record.proxies.filter((proxy) => proxy.packets > 0).map((proxy) => proxy.id)),
  );
  if (used.size < proxiesExpected)
    throw new TestFailure(`packets came from ${used.size} proxies, expected at least ${proxiesExpected}`);
  const megabytes = state.segments.reduce((sum, segment) => sum + segment.bytes, 0) / 1e6;
  const amount = `${state.segments.length} segments, ${megabytes.toFixed(1)} MB`;
  return `${amount}, ${used.size} proxies, video at ${state.currentTime.toFixed(1)} s`;
}

/**
 * The records of this play. Records arrive a little after their segments, so this waits, with the browser open, until
 * each segment has one.
 */
async function recordsSince(fleet, sinceMs, segments) {
  let records = [];
  const complete = async () => {
    records = (await fleet.getJson("/v1/records?limit=500")).records.filter((record) => record.startedAtMs >= sinceMs);
    return segments.every((segment) => records.some((record) => record.url === segment.url));
  };
  await waitFor("Origo's records of all segments", complete, 10_000).catch(() => undefined);
  return records;
}

/**
 * Starts Chromium with the extension, through a small script that enters the viewer's namespace. The sample's pages use
 * crypto.subtle, which Chromium gives to secure origins only, so one flag declares the sample's origin secure.
 */
async function openViewer(lab, network, work, { origoUrl, sampleUrl }) {
  const folder = path.join(work, "viewer");
  const extension = path.join(folder, "extension");
  await rm(folder, { recursive: true, force: true });
  await cp(path.join(ROOT, "extension/dist/chromium"), extension, { recursive: true });
  const { findChromium, writeExtensionDefaults } = lab("./dist/index.js");
  await writeExtensionDefaults(extension, { origoUrl, mode: MODE, connections: PROXY_COUNT });
  const [program, args] = inside(network.viewer, findChromium());
  const script = path.join(folder, "chromium.sh");
  await writeFile(script, `#!/bin/sh\nexec ${program} ${args.join(" ")} "$@"\n`);
  await chmod(script, 0o755);
  const browser = await lab("puppeteer-core").launch({
    executablePath: script,
    headless: true,
    pipe: true,
    userDataDir: path.join(folder, "profile"),
    enableExtensions: [extension],
    handleSIGINT: false,
    handleSIGTERM: false,
    handleSIGHUP: false,
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
      "--disable-dev-shm-usage",
      "--autoplay-policy=no-user-gesture-required",
      `--unsafely-treat-insecure-origin-as-secure=${sampleUrl}`,
    ],
  });
  return { browser, close: () => browser.close().catch(() => undefined) };
}

async function expectNothingLeft(network, work) {
  const left = [];
  const namespaces = (await run("ip", ["netns", "list"])).stdout;
  for (const name of [network.server, network.viewer]) if (namespaces.includes(name)) left.push(`namespace ${name}`);
  if ((await readFile("/proc/mounts", "utf8")).includes(work)) left.push("a mount");
  if ((await run("ip", ["-br", "link"])).stdout.includes(network.uplink)) left.push(`link ${network.uplink}`);
  if ((await run("iptables-save", [])).stdout.includes(network.uplink)) left.push("a firewall rule");
  if (existsSync(work)) left.push(work);
  const groups = (
    await run("find", ["/sys/fs/cgroup", "-maxdepth", "2", "-name", `tributary-test-${path.basename(work)}`])
  ).stdout.trim();
  if (groups) left.push(`control groups ${groups}`);
  for (const pid of (await readdir("/proc")).filter((name) => /^\d+$/.test(name))) {
    const command = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
    if (command.includes(work)) left.push(`process ${pid} ${command.split("\0")[0]}`);
  }
  if (left.length > 0) throw new TestFailure(`left behind: ${left.join(", ")}`);
}

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  process.on(signal, async () => {
    if (undoing) return;
    console.log(`${signal}: taking everything down`);
    stopRunning();
    await tearDown();
    process.exit(128 + 2);
  });
}

const startedMs = Date.now();
let cannotRun = false;
try {
  await main();
} catch (error) {
  if (undoing) await sleep(60_000);
  if (steps.failed === 0) steps.failed = 1;
  console.error(error instanceof TestFailure ? error.message : error);
  cannotRun = error instanceof CannotRun;
  if (!cannotRun) console.error("Again: npm run test:compose");
}
await tearDown();
console.log(`test:compose took ${((Date.now() - startedMs) / 1000).toFixed(0)} s`);
console.log(`${steps.passed} passed, ${steps.failed} failed`);
process.exit(cannotRun ? EXIT_CANNOT_RUN : Number(steps.failed > 0));
