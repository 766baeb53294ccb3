import type { ProxyInfo, TransportOption } from "./api";
import { Choice } from "./choice";
import { NetworkMemory } from "./memory";
import type { Transport } from "./platform";

const transport = (name: Transport["name"], reaches: (proxy: ProxyInfo) => boolean): Transport => ({
  name,
  reaches,
  open: () => Promise.reject(new Error()),
});
const WEB_TRANSPORT = { url: "https://a/v1/datagrams", certificateHashes: ["0".repeat(64)] };
const FULL: ProxyInfo = {
  id: "a",
  name: "a",
  url: "http://a",
  webTransport: WEB_TRANSPORT,
  udp: { host: "a", port: 1 },
};
const OTHER: ProxyInfo = { ...FULL, id: "b" };
const PLAIN: ProxyInfo = { id: "c", name: "c", url: "http://c" };

const choose = (option: TransportOption, network = (): string => "home"): Choice => {
  const all = [
    transport("webtransport", (proxy) => !!proxy.webTransport),
    transport("udp", (proxy) => !!proxy.udp),
    transport("webrtc", () => true),
  ];
  return new Choice(all, option, new NetworkMemory(network, () => 1000));
};
const names = (choice: Choice, proxy: ProxyInfo, nowMs = 0): string[] =>
  choice.order(proxy, nowMs).map(({ name }) => name);

test("choice: WebTransport comes before WebRTC, and plain UDP is tried only by name", () => {
  expect([names(choose("auto"), FULL), names(choose("auto"), PLAIN)]).toEqual([["webtransport", "webrtc"], ["webrtc"]]);
});

test.each([
  ["webtransport", ["webtransport"], []],
  ["webrtc", ["webrtc"], ["webrtc"]],
  ["udp", ["udp"], []],
] as const)("choice: tries only %s if the caller names it", (option, full, plain) => {
  expect([names(choose(option), FULL), names(choose(option), PLAIN)]).toEqual([full, plain]);
});

test("choice: the transport that worked comes first for a while, with this proxy and with new ones", () => {
  const choice = choose("auto");
  choice.noteWorked(FULL, "webrtc", 0);
  expect([names(choice, FULL, 1000), names(choice, OTHER, 1000)]).toEqual([
    ["webrtc", "webtransport"],
    ["webrtc", "webtransport"],
  ]);
  expect(names(choice, FULL, 1001)).toEqual(["webtransport", "webrtc"]);
});

test("choice: prefers the transport that worked with this proxy to one that worked with another", () => {
  const choice = choose("auto");
  choice.noteWorked(FULL, "webrtc", 0);
  choice.noteWorked(OTHER, "webtransport", 1);
  expect(names(choice, FULL, 2)).toEqual(["webrtc", "webtransport"]);
});

test("choice: remembers the transport that worked separately for each network", () => {
  let network = "hotel";
  const choice = choose("auto", () => network);
  choice.noteWorked(FULL, "webrtc", 0);
  network = "home";
  expect([names(choice, FULL, 1), names(choice, OTHER, 1)]).toEqual([
    ["webtransport", "webrtc"],
    ["webtransport", "webrtc"],
  ]);
  network = "hotel";
  expect([names(choice, FULL, 2), names(choice, OTHER, 2)]).toEqual([
    ["webrtc", "webtransport"],
    ["webrtc", "webtransport"],
  ]);
});

test("choice: a stand-in is tried by name, or where no other transport reaches the proxy", () => {
  const all = [
    transport("webtransport", (proxy) => !!proxy.webTransport),
    { ...transport("webrtc", () => true), isStandIn: true },
  ];
  const over = (option: TransportOption, proxy: ProxyInfo): string[] =>
    names(
      new Choice(
        all,
        option,
        new NetworkMemory(
          () => "home",
          () => 1000,
        ),
      ),
      proxy,
    );
  expect([over("auto", FULL), over("auto", PLAIN), over("webrtc", FULL)]).toEqual([
    ["webtransport"],
    ["webrtc"],
    ["webrtc"],
  ]);
});
