/**
 * Access: who is signed in. A login is a random cookie; the database keeps its digest. A change also needs the CSRF
 * token of the login. When Origo runs without login (main.ts allows this on loopback only), everyone is the admin
 * `local`, but only under a loopback host name. This stops a web page whose own host name was rebound to this machine.
 */
import { randomBytes } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import type { Request, Response } from "express";
import type { Role, LoginResponse } from "@tributary/contract/admin-schema";
import { digestOf as digest, same } from "./compare";
import type { Configuration } from "./configuration";
import { Refusal, type Gate } from "./http";
import { LoginLimits } from "./login-limits";
import { checkStrength } from "./password-strength";
import { keep, matches } from "./password";
import type { AdminStore } from "./store/admin-store";
import { Turns } from "./turns";

export interface AccessOptions {
  store: AdminStore;
  login: "required" | "off";
  nowMs: () => number;
  configuration: Configuration;
  /** Signs the device cookies. */
  deviceKey: string;
}

export interface Identity {
  name: string;
  role: Role;
  csrfToken: string;
}

const COOKIE = "tributary_login";
/** Tells that a user has signed in with this browser before (login-limits.ts). */
const DEVICE_COOKIE = "tributary_device";
const DEVICE_MS = 180 * 86_400_000;
/** Checks of passwords that run at once. Each takes one of the four threads that also read files. */
const CHECKS_MAX = 2;
/** With more the last one would wait for longer than a person does. */
const CHECKS_WAITING_MAX = 32;
const CHECK_RETRY_SEC = 2;
/** The name of the stored secret that is the token of the one-time link. */
const SETUP = "setupToken";
const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?$/;

export class Access implements Gate {
  readonly #limits: LoginLimits;
  readonly #local: Identity = { name: "local", role: "admin", csrfToken: randomBytes(24).toString("base64url") };
  readonly #checks = new Turns({ runningMax: CHECKS_MAX, waitingMax: CHECKS_WAITING_MAX });
  #setupToken: string | undefined;

  readonly #options: AccessOptions;

  constructor(options: AccessOptions) {
    this.#options = options;

    this.#limits = new LoginLimits(options.configuration, options.deviceKey);
  }

  /**
   * Makes the token that creates the first admin. The token works once, at any Origo over this store. Undefined when
   * there is a user already, or when no login is required.
   */
  async makeSetupToken(): Promise<string | undefined> {
    const { store, login } = this.#options;
    if (login === "off" || (await store.users()).length > 0) return undefined;
    return (this.#setupToken = await store.secret(SETUP, () => randomBytes(24).toString("base64url")));
  }

  async admit(request: Request, access: "viewer" | "admin"): Promise<string> {
    const identity = await this.identify(request.headers);
    if (identity === undefined) throw new Refusal(401, { kind: "loginRequired", message: "sign in first" });
    if (access === "viewer") return identity.name;
    if (identity.role !== "admin")
      throw new Refusal(403, {
        kind: "adminRequired",
        message: `only an admin may do this; ${identity.name} is a viewer`,
      });
    if (request.method !== "GET" && request.method !== "HEAD") checkCsrf(request, identity);
    return identity.name;
  }

  /** Finds who sent these headers, which may also be those of a socket.io handshake. */
  async identify(headers: IncomingHttpHeaders): Promise<Identity | undefined> {
    if (this.#options.login === "off") {
      const { host = "", origin } = headers;
      return LOOPBACK.test(host) && (origin === undefined || origin === `http://${host}`) ? this.#local : undefined;
    }
    const cookie = cookieOf(headers);
    return cookie === undefined ? undefined : this.#options.store.login(digest(cookie), this.#options.nowMs());
  }

  async describe(headers: IncomingHttpHeaders): Promise<LoginResponse> {
    return answerOf(await this.identify(headers), this.#options.login === "required");
  }

  /** Signs in and sets the cookie. All failures have the same message. After too many failures the caller must wait. */
  async logIn(request: Request, response: Response, name: string, password: string): Promise<LoginResponse> {
    const { store, nowMs } = this.#options;
    const attempt = { name, address: request.ip ?? "", device: cookieOf(request.headers, DEVICE_COOKIE) };
    const { key, goesFirst } = this.#limits.placeOf(attempt);
    const checked = await this.#checks.run(key, goesFirst, async () => {
      const waitMs = this.#limits.begin(attempt, nowMs());
      if (waitMs > 0) throw tooMany("too many failed attempts", Math.ceil(waitMs / 1000));
      const user = await store.passwordOf(name);
      return { user: (await matches(password, user?.password)) ? user : undefined };
    });
    if (!checked) throw tooMany("too many people sign in at once", CHECK_RETRY_SEC);
    const { user } = checked;
    if (user === undefined)
      throw new Refusal(401, { kind: "wrongLogin", message: "no user has this name and password" });
    this.#limits.noteSuccess(attempt, nowMs());
    await store.noteLogin(name, nowMs());
    return this.#open(request, response, name, user.role);
  }

  /** Creates the first admin with the token of the one-time link, and signs this admin in. */
  async setUp(
    request: Request,
    response: Response,
    given: { token: string; name: string; password: string },
  ): Promise<LoginResponse> {
    const { store, nowMs } = this.#options;
    const refused = new Refusal(403, {
      kind: "setupRefused",
      field: "token",
      message: "token: this link was used already, or Origo did not print it",
    });
    if (this.#setupToken === undefined || !same(given.token, this.#setupToken)) throw refused;
    await checkStrength(given.password, given.name);
    if (
      !(await store.addUser({ name: given.name, password: await keep(given.password), role: "admin" }, nowMs(), true))
    )
      throw refused;
    this.#setupToken = undefined;
    await store.forgetSecret(SETUP);
    return this.#open(request, response, given.name, "admin");
  }

  async logOut(request: Request, response: Response): Promise<LoginResponse> {
    const identity = await this.identify(request.headers);
    if (identity !== undefined && this.#options.login === "required") {
      checkCsrf(request, identity);
      await this.#options.store.endLogin(digest(cookieOf(request.headers) ?? ""));
      setCookie(request, response, { name: COOKIE, value: "", maxAgeMs: 0 });
      return answerOf(undefined, true);
    }
    return this.describe(request.headers);
  }

  async #open(request: Request, response: Response, name: string, role: Role): Promise<LoginResponse> {
    const { store, nowMs, configuration } = this.#options;
    const loginMs = configuration.value("origo.loginHours") * 3_600_000;
    const [cookie, csrfToken] = [randomBytes(32).toString("base64url"), randomBytes(24).toString("base64url")];
    await store.addLogin({ id: digest(cookie), userName: name, csrfToken, expiresAtMs: nowMs() + loginMs }, nowMs());
    setCookie(request, response, { name: COOKIE, value: cookie, maxAgeMs: loginMs });
    const device = this.#limits.deviceCookie(name);
    setCookie(request, response, { name: DEVICE_COOKIE, value: device, maxAgeMs: DEVICE_MS, path: "/v1/login" });
    return answerOf({ name, role, csrfToken }, true);
  }
}

function tooMany(what: string, seconds: number): Refusal {
  const error = { kind: "tooManyAttempts", message: `${what}: wait ${seconds} s` } as const;
  return new Refusal(429, error, { "Retry-After": String(seconds) });
}

function answerOf(identity: Identity | undefined, loginRequired: boolean): LoginResponse {
  return {
    user: identity ? { name: identity.name, role: identity.role } : null,
    csrfToken: identity?.csrfToken ?? "",
    loginRequired,
  };
}

function checkCsrf(request: Request, { csrfToken }: Identity): void {
  const got = request.headers["x-csrf-token"];
  if (typeof got === "string" && same(got, csrfToken)) return;
  throw new Refusal(403, {
    kind: "csrfTokenWrong",
    message: "the header x-csrf-token must hold the token of this login, which GET /v1/login gives",
  });
}

interface Cookie {
  name: string;
  value: string;
  maxAgeMs: number;
  path?: string;
}

function setCookie(request: Request, response: Response, { name, value, maxAgeMs, path = "/" }: Cookie): void {
  const secure = request.secure || request.headers["x-forwarded-proto"] === "https";
  response.cookie(name, value, { httpOnly: true, sameSite: "strict", path, secure, maxAge: maxAgeMs });
}

function cookieOf(headers: IncomingHttpHeaders, wanted = COOKIE): string | undefined {
  for (const part of (headers.cookie ?? "").split(";")) {
    const [name, value] = part.trim().split("=");
    if (name === wanted && value) return decodeURIComponent(value);
  }
  return undefined;
}
