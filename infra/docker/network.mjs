/**
 * Two network namespaces for the compose test. The engine and the sample origin run in `server`, the browser in
 * `viewer`. One cable joins them, and a filter at the server's end passes only the published ports. The host gives the
 * server namespace a way out, because image builds install packages. The host's own ports, bridges and firewall chains
 * stay unchanged.
 */
import { readFile, writeFile } from "node:fs/promises";
import { run } from "./run.mjs";

const FORWARD_FILE = "/proc/sys/net/ipv4/ip_forward";

/**
 * @param {string} id a short unique word, at most 8 letters or digits
 * @param {number} subnet third byte of the addresses used, 0 to 255
 */
export function describeNetwork(id, subnet) {
  return {
    server: `tributary-${id}-server`,
    viewer: `tributary-${id}-viewer`,
    uplink: `tru${id}`,
    hostAddress: `10.231.${subnet}.1`,
    uplinkAddress: `10.231.${subnet}.2`,
    uplinkNet: `10.231.${subnet}.0/30`,
    cable: `trc${id}`,
    serverAddress: `10.231.${subnet}.5`,
    viewerAddress: `10.231.${subnet}.6`,
  };
}

/** Program and arguments that run a command inside a network namespace, with unchanged mounts. */
export const inside = (namespace, ...command) => ["nsenter", [`--net=/run/netns/${namespace}`, ...command]];

const ip = (...args) => run("ip", args);
const hostRules = (network) => [
  ["nat", "POSTROUTING", "-s", network.uplinkNet, "!", "-o", network.uplink, "-j", "MASQUERADE"],
  ["filter", "FORWARD", "-i", network.uplink, "-j", "ACCEPT"],
  ["filter", "FORWARD", "-o", network.uplink, "-j", "ACCEPT"],
];

/** Makes both namespaces. Returns the host's previous ip_forward. */
export async function createNetwork(network) {
  const { server, viewer, uplink, cable } = network;
  for (const name of [server, viewer]) {
    await ip("netns", "add", name);
    await ip("-n", name, "link", "set", "lo", "up");
  }
  await ip("link", "add", uplink, "type", "veth", "peer", "name", "uplink", "netns", server);
  await ip("addr", "add", `${network.hostAddress}/30`, "dev", uplink);
  await ip("link", "set", uplink, "up");
  await ip("-n", server, "addr", "add", `${network.uplinkAddress}/30`, "dev", "uplink");
  await ip("-n", server, "link", "set", "uplink", "up");
  await ip("-n", server, "route", "add", "default", "via", network.hostAddress);

  await ip("-n", server, "link", "add", cable, "type", "veth", "peer", "name", "cable", "netns", viewer);
  await ip("-n", server, "addr", "add", `${network.serverAddress}/30`, "dev", cable);
  await ip("-n", server, "link", "set", cable, "up");
  await ip("-n", viewer, "addr", "add", `${network.viewerAddress}/30`, "dev", "cable");
  await ip("-n", viewer, "link", "set", "cable", "up");
  await ip("-n", viewer, "route", "add", "default", "via", network.serverAddress);

  const forwardBefore = (await readFile(FORWARD_FILE, "utf8")).trim();
  await writeFile(FORWARD_FILE, "1");
  for (const [table, chain, ...rule] of hostRules(network))
    await run("iptables", ["-w", "-t", table, "-I", chain, ...rule]);
  // The host must be reachable by the runner without a route of its own: the runner talks to the server's uplink
  // address.
  return forwardBefore;
}

/**
 * Lets the viewer reach these ports of the server and nothing else. The rules stand before address translation, so
 * they see the published port, not the container's.
 * @param {{ tcp: string[], udp: string[] }} ports single ports "7600" or ranges "7611:7642"
 */
export async function allowOnly(network, ports) {
  const rule = (tool, ...args) =>
    run(...inside(network.server, tool, "-w", "-t", "raw", "-A", "PREROUTING", "-i", network.cable, ...args));
  for (const protocol of ["tcp", "udp"]) {
    for (const range of ports[protocol])
      await rule("iptables", "-d", network.serverAddress, "-p", protocol, "--dport", range, "-j", "ACCEPT");
  }
  await rule("iptables", "-j", "DROP");
  await rule("ip6tables", "-j", "DROP");
}

/** Takes everything away that createNetwork made; safe to call at any moment and more than once. */
export async function removeNetwork(network, forwardBefore) {
  const quietly = { allowFailure: true };
  for (const name of [network.viewer, network.server]) await endProcessesIn(name);
  for (const [table, chain, ...rule] of hostRules(network))
    await run("iptables", ["-w", "-t", table, "-D", chain, ...rule], quietly);
  await run("ip", ["link", "del", network.uplink], quietly);
  for (const name of [network.viewer, network.server]) await run("ip", ["netns", "del", name], quietly);
  if (forwardBefore !== undefined) await writeFile(FORWARD_FILE, forwardBefore);
}

async function endProcessesIn(namespace) {
  for (const signal of ["SIGTERM", "SIGKILL"]) {
    const { stdout } = await run("ip", ["netns", "pids", namespace], { allowFailure: true });
    const pids = stdout.split("\n").filter(Boolean).map(Number);
    if (pids.length === 0) return;
    for (const pid of pids) {
      try {
        process.kill(pid, signal);
      } catch {
        // It ended by itself between the listing and the signal.
      }
    }
    await new Promise((resolve) => setTimeout(resolve, signal === "SIGTERM" ? 1500 : 200));
  }
}
