/** Whom the gateway refuses: everything that a web page causes. */
import { hostname } from "node:os";
import { refusalOf, type GuardedRequest } from "./guard";

const own = { port: 7690, publicHost: undefined };
const player: GuardedRequest = {
  method: "GET",
  target: "/https/example.org/a",
  host: "127.0.0.1:7690",
  origin: undefined,
  fetchSite: undefined,
};
const statusOf = (change: Partial<GuardedRequest>, guarding: Parameters<typeof refusalOf>[1] = own) =>
  refusalOf({ ...player, ...change }, guarding)?.status;

describe("guard", () => {
  test.each<[string, Partial<GuardedRequest>, number | undefined]>([
    ["a player", {}, undefined],
    ["a player that asks localhost", { host: "localhost:7690" }, undefined],
    ["a player over IPv6", { host: "[::1]:7690" }, undefined],
    ["a person who types the address", { fetchSite: "none" }, undefined],
    ["the gateway's own page", { fetchSite: "same-origin", origin: "http://127.0.0.1:7690" }, undefined],
    ["a page of another site", { fetchSite: "cross-site" }, 403],
    ["a page of another port", { fetchSite: "same-site" }, 403],
    ["a value that no browser sends", { fetchSite: "" }, 403],
    ["a page's fetch in an old browser", { origin: "https://evil.example" }, 403],
    ["a page without an origin", { origin: "null" }, 403],
    ["a name that leads here", { host: "evil.example:7690" }, 421],
    ["a name that leads here, as the same origin", { host: "evil.example:7690", fetchSite: "same-origin" }, 421],
    ["another port of this machine", { host: "127.0.0.1:80" }, 421],
    ["no port", { host: "127.0.0.1" }, 421],
    ["no host", { host: undefined }, 421],
    ["an address of this network", { host: "192.168.1.2:7690" }, 421],
    ["a client that takes it for a proxy", { target: "http://example.org/" }, 400],
    ["POST", { method: "POST" }, 405],
    ["OPTIONS of a preflight", { method: "OPTIONS", origin: "https://evil.example" }, 403],
  ])("%s: %#", (_name, change, status) => expect(statusOf(change)).toBe(status));

  test.each<[string, number | undefined]>([
    ["192.168.1.2:7690", undefined],
    ["127.0.0.1:7690", undefined],
    ["media.home:7690", undefined],
    [`${hostname()}:7690`, undefined],
    [`${hostname().split(".")[0]}.local:7690`, undefined],
    ["evil.example:7690", 421],
    [`${hostname()}.evil.example:7690`, 421],
  ])("with --host media.home, Host %s", (host, status) =>
    expect(statusOf({ host }, { port: 7690, publicHost: "media.home" })).toBe(status),
  );
});
