/**
 * Starts the product's services in the hosts of a scenario: the sample origin in `origin`, Origo in `origo`, a proxy in
 * each `proxy`. They are the built programs. The links limit the rates, so the proxies themselves have no limit.
 */
import { randomBytes } from "node:crypto";
import { devNull } from "node:os";
import path from "node:path";
import { DEFAULT_PORTS, repoRoot, startService, type Service } from "@tributary/lab-stack";
import { LinksError } from "./core";
import type { Network } from "./network";

export interface LinkServices {
  readonly origin: Service;
  readonly origo: Service;
  readonly proxies: readonly Service[];
  /** ORIGIN_URL, ORIGO_URL, ORIGO_COOKIE (of a signed-in user), PROXY_URLS (separated by commas). */
  readonly env: Readonly<Record<string, string>>;
  /** Starts a killed proxy again under its name. Resolves when it listens. */
  restart(index: number): Promise<void>;
}

const REGISTER_MS_MAX = 15_000;
const SIGN_IN_MS_MAX = 5000;
/** The namespaces have their own /dev/shm, so the records and keys in it disappear with them. */
const SHARED = "/dev/shm";

/** Runs in Origo's host: waits until the wanted number of proxies have registered. */
const WAIT_FOR_PROXIES = `
  const [url, wanted, msMax] = [process.argv[1], Number(process.argv[2]), Number(process.argv[3])];
  const endsAt = Date.now() + msMax;
  (async () => {
    for (let seen = 0; ; ) {
      seen = (await (await fetch(url + "/v1/proxies?count=32")).json()).proxies.length;
      if (seen >= wanted) return;
      if (Date.now() > endsAt) {
        console.error(seen + " of " + wanted + " proxies registered with Origo in " + msMax / 1000 + " s");
        process.exit(1);
      }
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  })();`;

const SIGN_IN = `
  (async () => {
    const [url, token, password] = process.argv.slice(1);
    const answer = await fetch(url + "/v1/setup", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ token, name: "links", password }),
    });
    if (!answer.ok)
      throw new Error("Origo refused to create the first user: " + answer.status + " " + (await answer.text()));
    console.log(answer.headers.getSetCookie()[0].split(";")[0]);
  })();`;

/** Creates Origo's first user with the link that Origo prints, and returns the cookie. Only users see records. */
async function signIn(network: Network, origo: Service): Promise<string> {
  for (const endMs = Date.now() + SIGN_IN_MS_MAX; ; await new Promise((resolve) => setTimeout(resolve, 20))) {
    const token = /"url":"[^"]*setup=([\w-]+)"/.exec(origo.tail())?.[1];
    if (token === undefined && Date.now() < endMs) continue;
    if (token === undefined) throw new Error(`Origo printed no sign-in link:\n${origo.tail()}`);
    const program = network.run(
      "origo",
      [process.execPath, "-e", SIGN_IN, origo.url, token, randomBytes(24).toString("hex")],
      { stdio: ["ignore", "pipe", "inherit"] },
    );
    let cookie = "";
    program.stdout!.on("data", (text: Buffer) => (cookie += text.toString()));
    const code = await new Promise((resolve) => program.once("close", resolve));
    if (code !== 0) throw new Error("signing in to Origo failed");
    return cookie.trim();
  }
}

export async function startLinkServices(network: Network, logFolder: string | null): Promise<LinkServices> {
  const launch = (host: string, script: string, port: number, env: Record<string, string>): Promise<Service> =>
    startService({
      name: host,
      script: path.join(repoRoot, script),
      env: { HOST: network.address(host), PORT: String(port), ...env },
      logFile: logFolder === null ? devNull : path.join(logFolder, `${host}.log`),
      through: network.words(host),
    });
  const origin = await launch("origin", "lab/stack/dist/sample/main.js", DEFAULT_PORTS.sample, {});
  const origo = await launch("origo", "origo/dist/main.js", DEFAULT_PORTS.origo, { DATA_DIR: `${SHARED}/origo` });
  const common = {
    ORIGO_URL: origo.url,
    ORIGO_CODE_FILE: `${SHARED}/origo/enrolment-code`,
    RATE_BYTES_PER_SEC: "0",
    UDP_PLAIN_PORT: "0",
    ALLOW_HOSTS: new URL(origin.url).host,
    ALLOW_PRIVATE_HOSTS: new URL(origin.url).host,
    // The benches measure plain HTTP from the proxies in a page of the origin.
    ALLOW_ORIGINS: new URL(origin.url).origin,
  };
  const names = network.scenario.hosts.map(({ name }) => name).filter((name) => /^proxy\d*$/.test(name));
  const startProxy = (name: string): Promise<Service> =>
    launch(name, "proxy/dist/main.js", DEFAULT_PORTS.proxy, {
      ...common,
      PROXY_NAME: name,
      DATA_DIR: `${SHARED}/${name}`,
      LIBRARY_DIR: `${SHARED}/${name}/library`,
      UDP_PORT: String(DEFAULT_PORTS.proxy),
    });
  const proxies = await Promise.all(names.map(startProxy));
  const restart = async (index: number): Promise<void> => void (proxies[index] = await startProxy(names[index]!));
  await registered(network, origo.url, proxies.length);
  const env = {
    ORIGIN_URL: origin.url,
    ORIGO_URL: origo.url,
    ORIGO_COOKIE: await signIn(network, origo),
    PROXY_URLS: proxies.map(({ url }) => url).join(","),
  };
  return { origin, origo, proxies, env, restart };
}

async function registered(network: Network, origoUrl: string, count: number): Promise<void> {
  const waiter = network.run(
    "origo",
    [process.execPath, "-e", WAIT_FOR_PROXIES, origoUrl, String(count), String(REGISTER_MS_MAX)],
    { stdio: ["ignore", "ignore", "pipe"] },
  );
  let complaint = "";
  waiter.stderr!.on("data", (text: Buffer) => (complaint += text.toString()));
  const code = await new Promise((resolve) => waiter.once("close", resolve));
  if (code !== 0) throw new LinksError(complaint.trim() || "the proxies did not register with Origo");
}
