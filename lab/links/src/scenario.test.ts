import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { changedPipe, parseChange, parseScenario, parseScenarioText, ScenarioError } from "./scenario";
import type { Scenario } from "./scenario";

const SCENARIOS = path.resolve(__dirname, "../scenarios");

function faultsOf(work: () => unknown): readonly string[] {
  try {
    work();
  } catch (error) {
    if (error instanceof ScenarioError) return error.faults;
    throw error;
  }
  return [];
}

const hostOf = (scenario: Scenario, name: string) => scenario.hosts.find((host) => host.name === name)!;

test("scenario: a link's fields hold in both directions, and a queue in ms becomes bytes at the rate", () => {
  const { hosts } = parseScenarioText(
    "hosts: { client: , proxy: { count: 2, link: { delay: 25 ms, up: { rate: 896 KB/s, queue: 50 ms, loss: 2 % } } } }",
    "a.yaml",
  );
  expect(hosts.map(({ name, address }) => [name, address])).toEqual([
    ["client", "10.99.0.1"],
    ["proxy1", "10.99.0.2"],
    ["proxy2", "10.99.0.3"],
  ]);
  expect(hosts[1]!.up).toMatchObject({
    rateBytesPerSec: 896_000,
    queueBytes: 44_800,
    delayMs: 25,
    loss: { good: 0.02, enterBad: 0 },
  });
  expect(hosts[1]!.down).toMatchObject({ rateBytesPerSec: 0, delayMs: 25, loss: { good: 0 } });
});

test("scenario: a rate without a queue gets a queue of 100 ms", () => {
  expect(
    hostOf(parseScenario({ hosts: { client: { link: { down: { rate: "10 Mbit/s" } } } } }), "client").down.queueBytes,
  ).toBe(125_000);
});

test("scenario: servers are on the backbone only when there is one", () => {
  const hosts = { client: null, origin: null, box: null, cache: { server: true } };
  const servers = (scenario: Scenario) => scenario.hosts.filter(({ server }) => server).map(({ name }) => name);
  expect(servers(parseScenario({ hosts }))).toEqual([]);
  expect(servers(parseScenario({ hosts, backbone: { delay: "5 ms" } }))).toEqual(["origin", "cache"]);
});

test.each([
  [
    { hosts: { client: { link: { up: { rate: "fast" } } } } },
    /^hosts\.client\.link\.up\.rate: got "fast"; wanted a rate from 100 B\/s to 10 GB\/s/,
  ],
  [
    { hosts: { client: { link: { loss: "101 %" } } } },
    /^hosts\.client\.link\.loss: got "101 %"; wanted a share from 0 to 100 %/,
  ],
  [
    { hosts: { client: { link: { loss: { enterBad: "1 %" } } } } },
    /^hosts\.client\.link\.loss\.leaveBad: got nothing; wanted a share/,
  ],
  [{ hosts: { client: { link: { mtu: 575 } } } }, /^hosts\.client\.link\.mtu: got 575; .*576/],
  [{ hosts: { client: { link: { dely: "1 ms" } } } }, /^hosts\.client\.link: got "dely", which is no setting here/],
  [
    { hosts: { client: { link: { rate: "10 %" } } } },
    /^hosts\.client\.link\.rate: got 10 %, but the scenario's rate is unlimited/,
  ],
  [
    { hosts: { client: { tcp: { congestion: "b b r" } } } },
    /^hosts\.client\.tcp\.congestion: got "b b r"; wanted the name/,
  ],
  [{ hosts: { "Bad Name": null, client: null } }, /Bad Name: .*wanted a host name/],
  [{ hosts: { proxy: null } }, /^hosts: got proxy; wanted one named client/],
  [{ hosts: { client: { count: 65 } } }, /^hosts\.client\.count: got 65; .*64/],
  [
    { services: true, hosts: { client: null } },
    /^services: got hosts client; wanted origin, origo and at least one proxy/,
  ],
  [
    { hosts: { client: null }, changes: [{ at: "5 s", link: "proxy1", cut: true }] },
    /^changes\.0\.link: got "proxy1", wanted one of client/,
  ],
  [{ hosts: { client: null }, changes: [{ at: "5 s", link: "client", rate: "10 %" }] }, /^changes\.0\.rate: got 10 %/],
  [
    { hosts: { client: null }, changes: [{ at: "2 h", link: "client", cut: true }] },
    /^changes\.0\.at: got "2 h"; wanted a time/,
  ],
  [{}, /^hosts: got nothing/],
  [null, /^scenario: got null/],
])("scenario: %j is refused with its place, value and limit", (value, fault) => {
  expect(faultsOf(() => parseScenario(value))).toEqual([expect.stringMatching(fault)]);
});

test("scenario: values just inside the limits are accepted (mtu 576, 64 hosts, loss 100 %)", () => {
  const scenario = parseScenario({ hosts: { client: { link: { mtu: 576, loss: "100 %" } }, proxy: { count: 63 } } });
  expect(scenario.hosts).toHaveLength(64);
});

test("scenario: the error names every fault and the file", () => {
  const faults = faultsOf(() => parseScenarioText("seed: -1\nservices: perhaps\nhosts: { client: }", "b.yaml"));
  expect(faults).toEqual([
    expect.stringMatching(/^b\.yaml: seed: got -1/),
    expect.stringMatching(/^b\.yaml: services: got "perhaps"/),
  ]);
  expect(faultsOf(() => parseScenarioText("hosts: [", "c.yaml"))).toEqual([
    expect.stringMatching(/^c\.yaml: not YAML/),
  ]);
});

test("change: a share refers to the scenario's rate, and the queue keeps its bytes", () => {
  const { up } = hostOf(parseScenario({ hosts: { client: { link: { rate: "1 MB/s" } } } }), "client");
  const slow = changedPipe(up, parseChange({ up: { rate: "10 %" } }), "up", up.rateBytesPerSec);
  expect(slow).toMatchObject({ rateBytesPerSec: 100_000, queueBytes: 100_000 });
  expect(changedPipe(slow, parseChange({ rate: "100 %" }), "up", up.rateBytesPerSec)).toEqual(up);
});

test.each(readdirSync(SCENARIOS))("scenario: lab/links/scenarios/%s is valid and has services", (file) => {
  expect(parseScenarioText(readFileSync(path.join(SCENARIOS, file), "utf8"), file).services).toBe(true);
});
