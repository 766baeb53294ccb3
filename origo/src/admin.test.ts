/**
 * Tests logins, users, decisions about proxies, configuration, experiments and views, with real HTTP and a real
 * database.
 */
/* eslint-disable @typescript-eslint/no-explicit-any -- answers are looked at field by field, as a stranger would */
import { generateKeyPairSync, createPublicKey, verify } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { io, type Socket } from "socket.io-client";
import { ClientConfig, ConfigResponse, Experiment, LoginResponse } from "@tributary/contract/admin-schema";
import { FleetResponse, ProxiesResponse, type ProxyControl } from "@tributary/contract/schema";
import { startOrigo, type Origo } from "./server";
import { joinProxy } from "../test/proxy";
import { helloOf, recordOf } from "../../contract/test/samples";

jest.setTimeout(60_000);

const PASSWORD = "a long enough password";
let folder: string;
let origo: Origo;
let sockets: Socket[] = [];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "origo-admin-"));
  await writeFile(join(folder, "index.html"), "<!doctype html><title>page</title>");
  origo = await start();
});
afterEach(async () => {
  for (const socket of sockets) socket.disconnect();
  sockets = [];
  await origo.close();
  await rm(folder, { recursive: true, force: true });
});

const start = (login: "required" | "off" = "required"): Promise<Origo> =>
  startOrigo({ host: "127.0.0.1", port: 0, dataDir: folder, dashboardDir: folder, login });

/** Keeps cookies and the CSRF token as a browser does. */
class Visitor {
  cookie = "";
  csrfToken = "";

  async call(
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<{ status: number; body: any; headers: Headers }> {
    const response = await fetch(origo.url + path, {
      method,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      headers: {
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        cookie: this.cookie,
        "x-csrf-token": this.csrfToken,
        ...headers,
      },
    });
    const text = await response.text();
    const cookie = response.headers.get("set-cookie");
    if (cookie !== null) this.cookie = cookie.split(";")[0] ?? "";
    const answer: unknown = text === "" ? undefined : JSON.parse(text);
    const login = LoginResponse.safeParse(answer);
    if (login.success) this.csrfToken = login.data.csrfToken;
    return { status: response.status, body: answer, headers: response.headers };
  }
  logIn(name: string, password = PASSWORD) {
    return this.call("POST", "/v1/login", { name, password });
  }
}

async function admin(): Promise<Visitor> {
  const visitor = new Visitor();
  const token = (origo.setupPath ?? "").split("=")[1];
  expect((await visitor.call("POST", "/v1/setup", { token, name: "ada", password: PASSWORD })).status).toBe(200);
  return visitor;
}

async function viewer(by: Visitor): Promise<Visitor> {
  expect((await by.call("POST", "/v1/users", { name: "vera", password: PASSWORD, role: "viewer" })).status).toBe(201);
  const visitor = new Visitor();
  expect((await visitor.logIn("vera")).status).toBe(200);
  return visitor;
}

async function connect(namespace: string, options: object): Promise<Socket> {
  const socket = io(origo.url + namespace, {
    transports: ["websocket"],
    reconnection: false,
    forceNew: true,
    ...options,
  });
  sockets.push(socket);
  await new Promise<void>((resolve, reject) => {
    socket.on("connect", resolve);
    socket.on("connect_error", reject);
  });
  return socket;
}

async function proxy(
  name: string,
  more: object = {},
): Promise<{ socket: Socket; id: string; controls: ProxyControl[] }> {
  const controls: ProxyControl[] = [];
  const hello = helloOf({ name, url: `http://127.0.0.1:7611/${name}`, ...more });
  const note = (event: string, message: unknown): void => {
    if (event === "control") controls.push(message as ProxyControl);
  };
  const joined = await joinProxy(origo.url, folder, hello, note);
  sockets.push(joined.socket);
  return { ...joined, controls };
}

async function until(check: () => boolean | Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 250; tries++) {
    if (await check()) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  throw new Error("it did not come true within 5 s");
}

describe("signing in", () => {
  test("the one-time link creates the first admin once, and sets a cookie that scripts cannot read", async () => {
    const visitor = new Visitor();
    expect((await visitor.call("GET", "/v1/login")).body).toEqual({ user: null, csrfToken: "", loginRequired: true });
    const token = (origo.setupPath ?? "").split("=")[1];
    const wrong = await visitor.call("POST", "/v1/setup", { token: "x".repeat(32), name: "eve", password: PASSWORD });
    expect([wrong.status, wrong.body.error.kind]).toEqual([403, "setupRefused"]);
    const made = await visitor.call("POST", "/v1/setup", { token, name: "ada", password: PASSWORD });
    expect(made.body).toMatchObject({ user: { name: "ada", role: "admin" }, loginRequired: true });
    expect(made.headers.get("set-cookie")).toMatch(
      /^tributary_login=[\w-]{43}; Max-Age=43200; Path=\/; Expires=.*; HttpOnly; SameSite=Strict$/,
    );
    expect((await visitor.call("POST", "/v1/setup", { token, name: "eve", password: PASSWORD })).status).toBe(403);
    await origo.close();
    origo = await start();
    expect(origo.setupPath).toBeUndefined();
    expect((await visitor.call("GET", "/v1/login")).body.user).toEqual({ name: "ada", role: "admin" });
  });

  test("behind TLS the cookie has the flag Secure", async () => {
    await admin();
    const { headers } = await new Visitor().call(
      "POST",
      "/v1/login",
      { name: "ada", password: PASSWORD },
      { "x-forwarded-proto": "https" },
    );
    expect(headers.get("set-cookie")).toContain("; Secure;");
  });

  test("a wrong password and an unknown name get the same answer, and ten of them make the name wait", async () => {
    await admin();
    const visitor = new Visitor();
    const [wrong, unknown] = [await visitor.logIn("ada", "wrong"), await visitor.logIn("nobody", "wrong")];
    expect([wrong.status, wrong.body]).toEqual([unknown.status, unknown.body]);
    expect(wrong.body.error.kind).toBe("wrongLogin");
    for (let tries = 1; tries < 10; tries++) await visitor.logIn("ada", "wrong");
    const refused = await visitor.logIn("ada");
    expect([refused.status, refused.body.error.kind, Number(refused.headers.get("retry-after")) > 0]).toEqual([
      429,
      "tooManyAttempts",
      true,
    ]);
    expect((await visitor.logIn("vera", "wrong")).status).toBe(401);
  });

  test("reading needs a login, a change needs an admin with the CSRF token, and clients need neither", async () => {
    const ada = await admin();
    const vera = await viewer(ada);
    const stranger = new Visitor();
    for (const path of [
      "/v1/fleet",
      "/v1/config",
      "/v1/config/history",
      "/v1/experiments",
      "/v1/views",
      "/v1/records",
      "/v1/errors",
    ]) {
      expect([path, (await stranger.call("GET", path)).status, (await vera.call("GET", path)).status]).toEqual([
        path,
        401,
        200,
      ]);
    }
    for (const path of [
      "/v1/proxies",
      "/v1/client-config",
      "/v1/site-rules",
      "/.well-known/tributary-keys.json",
      "/healthz",
      "/readyz",
      "/openapi.json",
      "/v1/login",
    ]) {
      expect([path, (await stranger.call("GET", path)).status]).toEqual([path, 200]);
    }
    expect((await stranger.call("POST", "/v1/records", { records: [recordOf()] })).status).toBe(202);
    const change = { baseVersion: 0, values: { "client.connections": 6 }, reason: "try" };
    expect((await stranger.call("PUT", "/v1/config", change)).status).toBe(401);
    expect((await vera.call("PUT", "/v1/config", change)).body.error.kind).toBe("adminRequired");
    expect((await vera.call("GET", "/v1/users")).status).toBe(403);
    expect((await ada.call("PUT", "/v1/config", change, { "x-csrf-token": "guess" })).body.error.kind).toBe(
      "csrfTokenWrong",
    );
    expect((await ada.call("PUT", "/v1/config", change)).status).toBe(200);
  });

  test("signing out ends the login, also for someone who kept the cookie", async () => {
    const ada = await admin();
    const kept = Object.assign(new Visitor(), { cookie: ada.cookie, csrfToken: ada.csrfToken });
    expect((await ada.call("DELETE", "/v1/login")).body).toEqual({ user: null, csrfToken: "", loginRequired: true });
    expect((await kept.call("GET", "/v1/fleet")).status).toBe(401);
  });

  test("without login, a loopback host name makes everyone admin, and a rebound name gets nothing", async () => {
    await origo.close();
    origo = await start("off");
    expect(origo.setupPath).toBeUndefined();
    const visitor = new Visitor();
    expect((await visitor.call("GET", "/v1/login")).body).toMatchObject({
      user: { name: "local", role: "admin" },
      loginRequired: false,
    });
    expect((await visitor.call("PUT", "/v1/config", { baseVersion: 0, values: {}, reason: "try" })).status).toBe(200);
    expect((await visitor.call("GET", "/v1/fleet", undefined, { origin: "http://evil.example" })).status).toBe(401);
    const rebound = await new Promise<number>((resolve, reject) => {
      const { port } = new URL(origo.url);
      void import("node:http").then(({ get }) =>
        get({ host: "127.0.0.1", port, path: "/v1/fleet", headers: { host: "evil.example" } }, (response) =>
          resolve(response.statusCode ?? 0),
        ).on("error", reject),
      );
    });
    expect(rebound).toBe(401);
  });

  test("pages of signed-in people hear of proxies, records and configuration; others cannot connect", async () => {
    const ada = await admin();
    await expect(connect("/dashboard", {})).rejects.toMatchObject({ data: { kind: "loginRequired" } });
    const page = await connect("/dashboard", { extraHeaders: { cookie: ada.cookie } });
    const heard: Record<string, any[]> = { fleet: [], records: [], config: [] };
    for (const event of Object.keys(heard)) page.on(event, (message) => heard[event]?.push(message));
    await proxy("p");
    await ada.call("POST", "/v1/records", { records: [recordOf(), recordOf()] });
    await ada.call("PUT", "/v1/config", { baseVersion: 0, values: { "origo.nearKm": 100 }, reason: "try" });
    await until(() => heard["fleet"]?.at(-1)?.proxies.length === 1 && heard["records"]?.length === 1);
    expect([heard["records"], heard["config"]]).toEqual([[{ count: 2 }], [{ version: 1 }]]);
    expect(FleetResponse.safeParse(heard["fleet"]?.at(-1)).success).toBe(true);
  });

  test("the page of a person whose login has ended is disconnected, and other pages stay", async () => {
    const ada = await admin();
    const vera = await viewer(ada);
    await ada.call("PUT", "/v1/config", { baseVersion: 0, values: { "origo.refreshMs": 500 }, reason: "see it soon" });
    const [page, other] = [
      await connect("/dashboard", { extraHeaders: { cookie: vera.cookie } }),
      await connect("/dashboard", { extraHeaders: { cookie: ada.cookie } }),
    ];
    let reason: string | undefined;
    page.on("disconnect", (why) => (reason = why));
    expect((await ada.call("DELETE", "/v1/users/vera")).status).toBe(200);
    await until(() => reason !== undefined);
    expect([reason, other.connected]).toEqual(["io server disconnect", true]);
    await expect(connect("/dashboard", { extraHeaders: { cookie: vera.cookie } })).rejects.toMatchObject({
      data: { kind: "loginRequired" },
    });
  });
});

describe("users", () => {
  test("the last admin cannot be removed and cannot become a viewer", async () => {
    const ada = await admin();
    for (const refused of [
      await ada.call("DELETE", "/v1/users/ada"),
      await ada.call("PATCH", "/v1/users/ada", { role: "viewer" }),
    ]) {
      expect([refused.status, refused.body.error.kind]).toEqual([409, "lastAdmin"]);
    }
    await ada.call("POST", "/v1/users", { name: "bob", password: PASSWORD, role: "admin" });
    expect((await ada.call("PATCH", "/v1/users/ada", { role: "viewer" })).status).toBe(200);
    expect((await new Visitor().logIn("ada")).body.user.role).toBe("viewer");
  });

  test("a new password signs the user out, and a removed user has no login", async () => {
    const ada = await admin();
    const vera = await viewer(ada);
    expect((await ada.call("PATCH", "/v1/users/vera", { password: "another good password" })).status).toBe(200);
    expect((await vera.call("GET", "/v1/fleet")).status).toBe(401);
    expect((await vera.logIn("vera")).status).toBe(401);
    expect((await vera.logIn("vera", "another good password")).status).toBe(200);
    expect((await ada.call("DELETE", "/v1/users/vera")).body.users.map((user: { name: string }) => user.name)).toEqual([
      "ada",
    ]);
    expect((await vera.call("GET", "/v1/fleet")).status).toBe(401);
  });

  test.each([
    [{ name: "", password: PASSWORD, role: "viewer" }, 400, "name"],
    [{ name: "x", password: "9 letters", role: "viewer" }, 400, "password"],
    [{ name: "x", password: "aaaaaaaaaaaaaaaaaaaa", role: "viewer" }, 400, "password"],
    [{ name: "x", password: "1234567890", role: "viewer" }, 400, "password"],
    [{ name: "x", password: "Password123!", role: "viewer" }, 400, "password"],
    [{ name: "x", password: "tributary2026", role: "viewer" }, 400, "password"],
    [{ name: "marguerite-duras", password: "marguerite-duras1", role: "viewer" }, 400, "password"],
    [{ name: " x", password: PASSWORD, role: "viewer" }, 400, "name"],
    [{ name: "x\u200b", password: PASSWORD, role: "viewer" }, 400, "name"],
    [{ name: "x\ny", password: PASSWORD, role: "viewer" }, 400, "name"],
    [{ name: "x", password: PASSWORD, role: "root" }, 400, "role"],
    [{ name: "ada", password: PASSWORD, role: "viewer" }, 409, "name"],
    [{ name: "'; DROP TABLE users; --", password: PASSWORD, role: "viewer" }, 201, undefined],
    [{ name: "<b>x</b>", password: PASSWORD, role: "viewer" }, 201, undefined],
  ])("adding the user %j is answered with %i", async (user, status, field) => {
    const ada = await admin();
    const answer = await ada.call("POST", "/v1/users", user);
    expect([answer.status, answer.body.error?.field]).toEqual([status, field]);
    if (status === 201)
      expect((await ada.call("DELETE", `/v1/users/${encodeURIComponent(user.name)}`)).status).toBe(200);
  });
});

describe("decisions about proxies", () => {
  const listed = async (): Promise<string[]> =>
    ProxiesResponse.parse((await new Visitor().call("GET", "/v1/proxies")).body)
      .proxies.map(({ name }) => name)
      .sort();

  test("clients do not get draining or disabled proxies, and the decisions survive a restart", async () => {
    const ada = await admin();
    const [a, b] = [await proxy("a"), await proxy("b")];
    await proxy("c");
    expect((await ada.call("POST", `/v1/fleet/${a.id}`, { action: "drain" })).status).toBe(200);
    await ada.call("POST", `/v1/fleet/${b.id}`, { action: "disable" });
    const renamed = await ada.call("POST", `/v1/fleet/${b.id}`, { action: "rename", name: "B <b>" });
    expect(renamed.body.proxies.map((each: { name: string; state: string }) => [each.name, each.state])).toEqual([
      ["B <b>", "disabled"],
      ["a", "draining"],
      ["c", "live"],
    ]);
    expect(await listed()).toEqual(["c"]);
    await until(() => a.controls.some(({ draining }) => draining));
    expect(b.controls.some(({ draining }) => draining)).toBe(false);

    await origo.close();
    origo = await start();
    const again = await proxy("a");
    await proxy("b");
    await until(() => again.controls.some(({ draining }) => draining));
    expect(await listed()).toEqual([]);
    await ada.call("POST", `/v1/fleet/${again.id}`, { action: "enable" });
    await until(() => again.controls.at(-1)?.draining === false);
    expect(await listed()).toEqual(["a"]);
    expect((await ada.call("POST", "/v1/fleet/0123456789abcdef", { action: "drain" })).status).toBe(404);
    expect((await ada.call("POST", `/v1/fleet/${a.id}`, { action: "explode" })).body.error).toMatchObject({
      kind: "badField",
      field: "action",
    });
  });
});

describe("configuration", () => {
  test("a change reaches proxies and clients with its version, and is stored with author and reason", async () => {
    const ada = await admin();
    const { controls } = await proxy("p");
    const values = { "proxy.rateBytesPerSec": 500_000, "client.mode": "split-http", "origo.nearKm": 3000 };
    const changed = ConfigResponse.parse(
      (await ada.call("PUT", "/v1/config", { baseVersion: 0, values, reason: "halve the rate" })).body,
    );
    expect([changed.version, changed.values]).toEqual([
      1,
      { "proxy.rateBytesPerSec": 500_000, "client.mode": "split-http" },
    ]);
    await until(() => controls.at(-1)?.version === 1);
    expect(controls.at(-1)).toMatchObject({ draining: false, values: { "proxy.rateBytesPerSec": 500_000 } });
    const client = await new Visitor().call("GET", "/v1/client-config");
    expect(ClientConfig.parse(client.body)).toEqual({
      version: 1,
      values: { "client.mode": "split-http" },
      experiments: [],
    });
    const conflict = await ada.call("PUT", "/v1/config", { baseVersion: 0, values: {}, reason: "late" });
    expect([conflict.status, conflict.body.error.kind]).toEqual([409, "versionConflict"]);
    await ada.call("PUT", "/v1/config", { baseVersion: 1, values: {}, reason: "back" });
    expect((await ada.call("GET", "/v1/config/history")).body.versions).toMatchObject([
      { version: 2, author: "ada", reason: "back", values: {} },
      { version: 1, author: "ada", reason: "halve the rate", values: changed.values },
    ]);
  });

  test.each([
    [{ "client.mode": "fast" }, "values.client.mode"],
    [{ "client.connections": 0 }, "values.client.connections"],
    [{ "client.connections": 33 }, "values.client.connections"],
    [{ "client.connections": 1.5 }, "values.client.connections"],
    [{ "client.connections": "4" }, "values.client.connections"],
    [{ "client.allowFallback": 1 }, "values.client.allowFallback"],
    [{ "client.nothing": 1 }, "values.client.nothing"],
  ])("%j is refused with the field, and nothing of it is stored", async (values, field) => {
    const ada = await admin();
    const refused = await ada.call("PUT", "/v1/config", {
      baseVersion: 0,
      values: { ...values, "proxy.cacheBytes": 1 },
      reason: "try",
    });
    expect([refused.status, refused.body.error.field]).toEqual([400, field]);
    expect((await ada.call("GET", "/v1/config")).body).toMatchObject({ version: 0, values: {} });
  });

  test("an experiment starts as a draft, then clients draw its arms, then it stops", async () => {
    const ada = await admin();
    const arms = [
      { name: "small", weight: 1, values: { "client.windowPackets": 60 } },
      { name: "large", weight: 2, values: { "client.windowPackets": 600 } },
    ];
    const draft = Experiment.parse(
      (await ada.call("POST", "/v1/experiments", { name: "window", question: "does w matter?", arms })).body,
    );
    const told = async (): Promise<unknown> => (await new Visitor().call("GET", "/v1/client-config")).body.experiments;
    expect([draft.state, draft.author, await told()]).toEqual(["draft", "ada", []]);
    expect((await ada.call("PATCH", `/v1/experiments/${draft.id}`, { state: "stopped" })).status).toBe(409);
    expect((await ada.call("PATCH", `/v1/experiments/${draft.id}`, { state: "running" })).body.state).toBe("running");
    expect(await told()).toEqual([{ id: draft.id, arms }]);
    const other = (await ada.call("POST", "/v1/experiments", { name: "window again", question: "", arms }))
      .body as Experiment;
    expect((await ada.call("PATCH", `/v1/experiments/${other.id}`, { state: "running" })).body.error.kind).toBe(
      "experimentsOverlap",
    );
    expect((await ada.call("PATCH", `/v1/experiments/${draft.id}`, { state: "stopped" })).body.state).toBe("stopped");
    expect(await told()).toEqual([]);
  });

  test.each([
    [[{ name: "a", weight: 1, values: {} }], "arms"],
    [
      [
        { name: "a", weight: 1, values: {} },
        { name: "a", weight: 1, values: {} },
      ],
      "arms[1].name",
    ],
    [
      [
        { name: "a", weight: 0, values: {} },
        { name: "b", weight: 1, values: {} },
      ],
      "arms[0].weight",
    ],
    [
      [
        { name: "a", weight: 1, values: {} },
        { name: "b", weight: 1, values: { "proxy.cacheBytes": 1 } },
      ],
      "arms[1].values.proxy.cacheBytes",
    ],
    [
      [
        { name: "a", weight: 1, values: {} },
        { name: "b", weight: 1, values: { "client.directoryAgeMs": 1000 } },
      ],
      "arms[1].values.client.directoryAgeMs",
    ],
  ])("an experiment with arms %j is refused at %s", async (arms, field) => {
    const ada = await admin();
    const refused = await ada.call("POST", "/v1/experiments", { name: "x", question: "", arms });
    expect([refused.status, refused.body.error.field]).toEqual([400, field]);
  });

  test("views are saved and removed", async () => {
    const ada = await admin();
    const { body: view } = await ada.call("POST", "/v1/views", { name: "<img src=x>", page: "analysis", state: "{}" });
    expect((await ada.call("GET", "/v1/views")).body).toEqual({ views: [view] });
    expect((await ada.call("DELETE", `/v1/views/${view.id}`)).status).toBe(204);
    expect((await ada.call("DELETE", `/v1/views/${view.id}`)).status).toBe(404);
  });
});

describe("tokens", () => {
  test("the list of proxies has a token, and the signing key is published and survives a restart", async () => {
    const { id } = await proxy("p");
    const client = "0b8f5a0e-6a1e-4c4e-8b0f-0123456789ab";
    const { body } = await new Visitor().call("GET", `/v1/proxies?client=${client}`);
    const { keys } = (await new Visitor().call("GET", "/.well-known/tributary-keys.json")).body;
    const [header = "", claims = "", signature = ""] = (body.token as string).split(".");
    const decode = (part: string): any => JSON.parse(Buffer.from(part, "base64url").toString());
    expect(decode(header)).toEqual({ alg: "EdDSA", typ: "JWT", kid: keys[0].kid });
    expect(decode(claims)).toMatchObject({ iss: "origo", sub: client, aud: [id], bytes: 2 ** 32 });
    expect(decode(claims).exp - decode(claims).iat).toBe(600);
    const signedBy = (key: Parameters<typeof verify>[2]): boolean =>
      verify(null, Buffer.from(`${header}.${claims}`), key, Buffer.from(signature, "base64url"));
    expect(signedBy(createPublicKey({ key: keys[0], format: "jwk" }))).toBe(true);
    expect(signedBy(generateKeyPairSync("ed25519").publicKey)).toBe(false);
    await origo.close();
    origo = await start();
    expect((await new Visitor().call("GET", "/.well-known/tributary-keys.json")).body.keys).toEqual(keys);
  });
});
