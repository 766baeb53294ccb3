/** Tests which proxies Origo lets in: real HTTP, real socket.io, a real database, and keys as proxies have them. */
import { randomBytes, type KeyObject } from "node:crypto";
import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { EnrolmentResponse } from "@tributary/contract/admin-schema";
import type { FleetResponse, ProxyAck } from "@tributary/contract/schema";
import { startOrigo, type Origo } from "./server";
import { Store } from "./store/index";
import { codeIn, linkTo, newKey, type LinkedProxy } from "../test/proxy";
import { helloOf } from "../../contract/test/samples";

let folder: string;
let origo: Origo;
let links: LinkedProxy[] = [];
let skewMs = 0;

const start = (): Promise<Origo> =>
  startOrigo({
    host: "127.0.0.1",
    port: 0,
    dataDir: folder,
    dashboardDir: folder,
    login: "off",
    nowMs: () => Date.now() + skewMs,
  });

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "origo-enrolment-"));
  skewMs = 0;
  origo = await start();
});
afterEach(async () => {
  for (const { socket } of links) socket.disconnect();
  links = [];
  await origo.close();
  await rm(folder, { recursive: true, force: true });
});

async function call<T>(method: string, path: string): Promise<T> {
  const { csrfToken } = (await (await fetch(`${origo.url}/v1/login`)).json()) as { csrfToken: string };
  return (await (await fetch(origo.url + path, { method, headers: { "x-csrf-token": csrfToken } })).json()) as T;
}

const newCode = async (): Promise<string> => (await call<{ code: string }>("POST", "/v1/enrolment")).code;
const fleet = async (): Promise<string[]> =>
  (await call<FleetResponse>("GET", "/v1/fleet")).proxies.map(({ name }) => name);

async function hello(name: string, key: KeyObject, code?: string): Promise<ProxyAck> {
  const link = await linkTo(origo.url);
  links.push(link);
  return link.hello(helloOf({ name }), key, code);
}

const kindOf = async (answer: Promise<ProxyAck>): Promise<string> => {
  const ack = await answer;
  return "error" in ack ? ack.error.kind : "in";
};

test("enrolment: a code lets one key in, which then needs no code, also after a restart of Origo", async () => {
  const [key, code] = [newKey(), await newCode()];
  expect(await kindOf(hello("a", key))).toBe("codeMissing");
  const first = await hello("a", key, code);
  expect(first).toEqual({ id: expect.stringMatching(/^[0-9a-f]{16}$/) as string });
  expect(await kindOf(hello("b", newKey(), code))).toBe("codeUsed");
  expect(await hello("a", key)).toEqual(first);
  await origo.close();
  origo = await start();
  expect(await hello("a", key)).toEqual(first);
  expect(await fleet()).toEqual(["a"]);
});

test("enrolment: a wrong code and one that has expired are refused, each by its kind", async () => {
  const code = await newCode();
  expect(await kindOf(hello("a", newKey(), code.slice(1)))).toBe("wrongCode");
  skewMs = 86_400_001;
  expect(await kindOf(hello("a", newKey(), code))).toBe("codeExpired");
});

test("enrolment: a key that is not proven for this connection is refused, with or without a code", async () => {
  const [key, link] = [newKey(), await linkTo(origo.url)];
  links.push(link);
  await hello("a", key, await newCode());
  const other = await linkTo(origo.url);
  links.push(other);
  const stolen = { ...link, challenge: other.challenge };
  const { proofOf } = await import("../test/proxy");
  for (const proof of [
    proofOf(key, stolen.challenge),
    { ...proofOf(key, link.challenge), signature: randomBytes(64).toString("base64url") },
    { ...proofOf(key, link.challenge), publicKey: randomBytes(32).toString("base64url") },
  ])
    expect(await link.socket.emitWithAck("hello", helloOf({ name: "a" }), proof)).toMatchObject({
      error: { kind: "proofWrong" },
    });
  expect(await kindOf(link.hello(helloOf({ name: "a" }), key))).toBe("in");
});

test("enrolment: a name belongs to its key: another proxy cannot take it, and its owner may change it", async () => {
  const [mine, other] = [newKey(), newKey()];
  await hello("a", mine, await newCode());
  const code = await newCode();
  expect(await kindOf(hello("a", other, code))).toBe("nameTaken");
  expect(await kindOf(hello("b", other, code))).toBe("in");
  expect(await kindOf(hello("a", other))).toBe("nameTaken");
  expect(await kindOf(hello("c", mine))).toBe("in");
  expect(await kindOf(hello("a", other))).toBe("in");
});

test("enrolment: one holder of a code registers one proxy, not forty", async () => {
  const code = await newCode();
  const kinds = await Promise.all(Array.from({ length: 40 }, (_, index) => kindOf(hello(`p${index}`, newKey(), code))));
  expect(kinds.filter((kind) => kind === "in")).toHaveLength(1);
  expect(await fleet()).toHaveLength(1);
});

test("enrolment: a revoked proxy is gone at once, a new code does not help it, and its name is free", async () => {
  const key = newKey();
  const code = await newCode();
  const ack = (await hello("a", key, code)) as { id: string };
  const gone = new Promise((resolve) => links[0]!.socket.once("disconnect", resolve));
  const { proxies } = await call<EnrolmentResponse>("DELETE", `/v1/enrolment/${ack.id}`);
  await gone;
  expect(proxies).toMatchObject([{ name: "a", author: "local", revokedAtMs: expect.any(Number) as number }]);
  expect(await fleet()).toEqual([]);
  expect(await kindOf(hello("a", key, await newCode()))).toBe("keyRevoked");
  expect(await kindOf(hello("a", newKey(), code))).toBe("codeUsed");
  expect(await kindOf(hello("a", newKey(), await newCode()))).toBe("in");
});

test("enrolment: guesses from one address end, and enrolled proxies behind it still connect", async () => {
  const key = newKey();
  await hello("a", key, await newCode());
  const kinds = new Set<string>();
  for (let guess = 0; guess < 52; guess++) kinds.add(await kindOf(hello("b", newKey(), `guess ${guess}`)));
  expect([...kinds]).toEqual(["wrongCode", "tooManyAttempts"]);
  expect(await kindOf(hello("b", newKey(), await newCode()))).toBe("tooManyAttempts");
  expect(await kindOf(hello("a", key))).toBe("in");
  skewMs = 300_000;
  expect(await kindOf(hello("b", newKey(), await newCode()))).toBe("in");
});

test("enrolment: the code file always holds an unused code, which only its owner can read", async () => {
  const codes = new Set<string>();
  for (const name of ["a", "b", "c"]) {
    const code = codeIn(folder);
    codes.add(code);
    expect(await kindOf(hello(name, newKey(), code))).toBe("in");
  }
  expect(codes.size).toBe(3);
  expect((await stat(join(folder, "enrolment-code"))).mode & 0o777).toBe(0o600);
  const code = codeIn(folder);
  await origo.close();
  origo = await start();
  expect(codeIn(folder)).toBe(code);
});

test("enrolment: a database of the version before gets the new tables and keeps its data", async () => {
  await origo.close();
  const before = await Store.open(folder);
  for (const table of [
    "proxy_keys",
    "enrolment_codes",
    "publishers",
    "publications",
    "publication_objects",
    "playlists",
    "convictions",
    "publication_served",
  ])
    await before.database.run(`DROP TABLE ${table}`);
  await before.database.run("UPDATE origo_schema SET version = 1");
  await before.database.run("INSERT INTO users VALUES ('ada', 'x', 'admin', 1, NULL)");
  await before.close();
  origo = await start();
  expect(await kindOf(hello("a", newKey(), await newCode()))).toBe("in");
  expect((await call<{ users: unknown[] }>("GET", "/v1/users")).users).toHaveLength(1);
});
