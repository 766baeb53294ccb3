/**
 * The product's services in the hosts of a scenario: sample origin in `origin`, Origo in `origo`, a proxy in each
 * `proxy`. Their built programs, configured as on any machine; rates are the links' matter.
 */
import { randomBytes } from "node:crypto";
import { devNull } from "node:os";
import path from "node:path";
import { DEFAULT_PORTS, repoRoot, startService, type Service } from "@tributary/lab-stack";
import { LinksError } from "./core";
import type { Links } from "./links";

export interface LinkServices {
  readonly origin: Service;
  readonly origo: Service;
  readonly proxies: readonly Service[];
  /** ORIGIN_URL, ORIGO_URL, ORIGO_COOKIE (of a user who is signed in), PROXY_URLS (with commas). */
  readonly env: Readonly<Record<string, string>>;
  /** Starts a proxy that was killed anew, under its name, and resolves when it listens. */
  restart(index: number): Promise<void>;
}

const REGISTER_MS_MAX = 15_000;
const SIGN_IN_MS_MAX = 5000;

/** Waits in Origo's own host until as many proxies as wanted have registered. */
const WAIT_FOR_PROXIES = `
  const [url, wanted, msMax] = [process.argv[1], Number(process.argv[2]), Number(process.argv[3])];
  const endsAt = Date.now() + msMax;
  (async () => {
    for (let seen = 0; ; ) {
      seen = (await (await fetch(url + "/v1/proxies?count=32")).json()).proxies.length;
      if (seen >= wanted) return;
      if (Date.now() > endsAt) { console.error(seen + " of " + wanted + " proxies registered with Origo in " + msMax / 1000 + " s"); process.exit(1); }
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  })();`;

const SIGN_IN = `
  (async () => {
    const [url, token, password] = process.argv.slice(1);
    const answer = await fetch(url + "/v1/setup", {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ token, name: "links", password }),
    });
    if (!answer.ok) throw new Error("Origo let nobody sign in: " + answer.status + " " + (await answer.text()));
    console.log(answer.headers.getSetCookie()[0].split(";")[0]);
  })();`;

/** Origo shows records to its users alone: makes the first, by the link that Origo prints, and returns his cookie. */
async function signIn(links: Links, origo: Service): Promise<string> {
  for (const endMs = Date.now() + SIGN_IN_MS_MAX; ; await new Promise((resolve) => setTimeout(resolve, 20))) {
    const token = /"url":"[^"]*setup=([\w-]+)"/.exec(origo.tail())?.[1];
    if (token === undefined && Date.now() < endMs) continue;
    if (token === undefined) throw new Error(`Origo printed no link to sign in with:\n${origo.tail()}`);
    const program = links.run(
      "origo",
      [process.execPath, "-e", SIGN_IN, origo.url, token, randomBytes(24).toString("hex")],
      { stdio: ["ignore", "pipe", "inherit"] },
    );
    let cookie = "";
    program.stdout!.on("data", (text: Buffer) => (cookie += text.toString()));
    const code = await new Promise((resolve) => program.once("close", resolve));
    if (code !== 0) throw new Error("nobody could sign in to Origo");
    return cookie.trim();
  }
}

export async function startLinkServices(links: Links, logFolder: string | null): Promise<LinkServices> {
  const launch = (host: string, script: string, port: number, env: Record<string, string>): Promise<Service> =>
    startService({
      name: host,
      script: path.join(repoRoot, script),
      env: { HOST: links.address(host), PORT: String(port), ...env },
      logFile: logFolder === null ? devNull : path.join(logFolder, `${host}.log`),
      through: links.words(host),
    });
  const secret = randomBytes(24).toString("hex");
  const origin = await launch("origin", "lab/stack/dist/sample/main.js", DEFAULT_PORTS.sample, {});
  // /dev/shm is the namespaces' own: the records go when they go.
  const origo = await launch("origo", "origo/dist/main.js", DEFAULT_PORTS.origo, {
    ORIGO_SECRET: secret,
    DATA_DIR: "/dev/shm",
  });
  const common = {
    ORIGO_URL: origo.url,
    ORIGO_SECRET: secret,
    RATE_BYTES_PER_SEC: "0",
    UDP_PLAIN_PORT: "0",
    ALLOW_HOSTS: new URL(origin.url).host,
    ALLOW_PRIVATE_HOSTS: new URL(origin.url).host,
  };
  const names = links.scenario.hosts.map(({ name }) => name).filter((name) => /^proxy\d*$/.test(name));
  const startProxy = (name: string): Promise<Service> =>
    launch(name, "proxy/dist/main.js", DEFAULT_PORTS.proxy, {
      ...common,
      PROXY_NAME: name,
      UDP_PORT: String(DEFAULT_PORTS.proxy),
    });
  const proxies = await Promise.all(names.map(startProxy));
  const restart = async (index: number): Promise<void> => void (proxies[index] = await startProxy(names[index]!));
  await registered(links, origo.url, proxies.length);
  const env = {
    ORIGIN_URL: origin.url,
    ORIGO_URL: origo.url,
    ORIGO_COOKIE: await signIn(links, origo),
    PROXY_URLS: proxies.map(({ url }) => url).join(","),
  };
  return { origin, origo, proxies, env, restart };
}

async function registered(links: Links, origoUrl: string, count: number): Promise<void> {
  const waiter = links.run(
    "origo",
    [process.execPath, "-e", WAIT_FOR_PROXIES, origoUrl, String(count), String(REGISTER_MS_MAX)],
    { stdio: ["ignore", "ignore", "pipe"] },
  );
  let complaint = "";
  waiter.stderr!.on("data", (text: Buffer) => (complaint += text.toString()));
  const code = await new Promise((resolve) => waiter.once("close", resolve));
  if (code !== 0) throw new LinksError(complaint.trim() || "the proxies did not register with Origo");
}
