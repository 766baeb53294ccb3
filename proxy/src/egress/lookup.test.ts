/** Names that a hosts file, the system and DNS servers know. The servers are played by a UDP socket. */
import dgram from "node:dgram";
import type { ResolverOptions } from "node:dns";
import dns from "node:dns/promises";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { EgressError } from "./error";
import { Lookup } from "./lookup";

const folder = mkdtempSync(path.join(os.tmpdir(), "lookup-"));
const hostsFile = path.join(folder, "hosts");
const isPrivate = (host: string): boolean => host.endsWith(".internal");
const RealResolver = dns.Resolver;
const realLookup = dns.lookup;
let server: dgram.Socket;
/** The names that were asked for, and which of them get an answer. */
let asked: string[] = [];
let answers: Record<string, number[]> = {};

/** Answers A questions with the address in `answers`, others with no such name, and `silent*` never. */
function answer(question: Buffer): Buffer | undefined {
  const labels: string[] = [];
  let at = 12;
  for (let length = question[at]!; length > 0; length = question[at]!) {
    labels.push(question.subarray(at + 1, at + 1 + length).toString());
    at += 1 + length;
  }
  const [name, type, end] = [labels.join("."), question.readUInt16BE(at + 1), at + 5];
  asked.push(name);
  if (name.startsWith("silent")) return undefined;
  const address = type === 1 ? answers[name] : undefined;
  const head = Buffer.from(question.subarray(0, 12));
  head.writeUInt16BE(answers[name] ? 0x8180 : 0x8183, 2);
  head.writeUInt16BE(address ? 1 : 0, 6);
  head.writeUInt32BE(0, 8);
  const record = address ? [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 9, 0, 4, ...address] : [];
  return Buffer.concat([head, question.subarray(12, end), Buffer.from(record)]);
}

beforeAll(async () => {
  server = dgram.createSocket("udp4").bind(0, "127.0.0.1");
  await once(server, "listening");
  server.on("message", (question, from) => {
    const bytes = answer(question);
    if (bytes) server.send(bytes, from.port, from.address);
  });
  const { port } = server.address();
  dns.Resolver = class extends RealResolver {
    constructor(options?: ResolverOptions) {
      super(options);
      this.setServers([`127.0.0.1:${port}`]);
    }
  };
});
afterAll(() => {
  dns.Resolver = RealResolver;
  server.close();
  rmSync(folder, { recursive: true });
});
beforeEach(() => {
  asked = [];
  answers = { "video.test": [203, 0, 113, 7] };
  writeFileSync(hostsFile, "# none\n");
});
afterEach(() => {
  dns.lookup = realLookup;
});

const lookup = (more: object = {}): Lookup => new Lookup({ isPrivate, hostsFile, ...more });
const kindOf = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => "found",
    (error: unknown) => (error instanceof EgressError ? error.rejection.kind : String(error)),
  );

test("lookup: public names are asked of the servers, and the system is not asked", async () => {
  dns.lookup = (() => Promise.reject(new Error("asked"))) as unknown as typeof dns.lookup;
  expect(await lookup().addressesOf("video.test", "a")).toEqual(["203.0.113.7"]);
});

test("lookup: the hosts file comes first, with comments, several names and capitals", async () => {
  writeFileSync(
    hostsFile,
    "203.0.113.9 Video.test other.test # a comment\n2001:db8::1\tvideo.test\nnonsense here.test\n",
  );
  const names = lookup();
  expect(await names.addressesOf("video.test", "a")).toEqual(["203.0.113.9", "2001:db8::1"]);
  expect(await names.addressesOf("other.test", "a")).toEqual(["203.0.113.9"]);
  expect(await kindOf(names.addressesOf("here.test", "a"))).toBe("dnsFailed");
  expect(asked).not.toContain("video.test");
});

test("lookup: localhost is this machine, also without a hosts file", async () => {
  for (const host of ["localhost", "a.localhost"])
    expect(await lookup({ hostsFile: "/nowhere" }).addressesOf(host, "a")).toEqual(["127.0.0.1", "::1"]);
  expect(asked).toEqual([]);
});

test("lookup: private hosts are asked of the system, two at once", async () => {
  let [running, most] = [0, 0];
  dns.lookup = (async () => {
    most = Math.max(most, ++running);
    await new Promise((resolve) => setTimeout(resolve, 20));
    running--;
    return [{ address: "10.0.0.1", family: 4 }];
  }) as unknown as typeof dns.lookup;
  const names = lookup();
  const hosts = ["a", "b", "c", "d", "e"].map((name) => `${name}.internal`);
  const found = await Promise.all(hosts.map((host) => names.addressesOf(host, "a")));
  expect(found).toEqual(hosts.map(() => ["10.0.0.1"]));
  expect([most, running, asked]).toEqual([2, 0, []]);
});

test("lookup: a name without addresses is refused, remembered and asked for once at a time", async () => {
  const names = lookup();
  expect(await Promise.all([1, 2, 3].map(() => kindOf(names.addressesOf("none.test", "a"))))).toEqual([
    "dnsFailed",
    "dnsFailed",
    "dnsFailed",
  ]);
  const before = asked.length;
  expect(before).toBeLessThanOrEqual(4);
  expect(await kindOf(names.addressesOf("none.test", "b"))).toBe("dnsFailed");
  expect(asked).toHaveLength(before);
});

test("lookup: when there is no room, the client with the most look-ups loses one", async () => {
  const names = lookup({ lookupsMax: 4 });
  const slow = [0, 1, 2, 3].map((index) => kindOf(names.addressesOf(`silent${index}.test`, "a")));
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(await names.addressesOf("video.test", "b")).toEqual(["203.0.113.7"]);
  expect(await Promise.race(slow)).toBe("proxyBusy");
  expect((await Promise.all(slow)).sort()).toEqual(["dnsFailed", "dnsFailed", "dnsFailed", "proxyBusy"]);
});
