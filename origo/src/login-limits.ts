/**
 * Login limits: how many wrong passwords are taken. Failures are counted by user name and address together, so a
 * stranger who guesses cannot lock the owner of a name out. When many addresses guess at one name, each address gets
 * only a few attempts. A browser in which the user has signed in before holds a device cookie and has a count of its
 * own, so it also gets in beside a stranger behind the same address (the idea of OWASP's device cookies).
 */
import { createHmac, randomBytes } from "node:crypto";
import { same } from "./compare";
import type { Configuration } from "./configuration";
import { limitKeyOf } from "./network";
import { RateLimit } from "./rate-limit";

/** This many names, addresses and devices are counted. */
const KEYS_MAX = 10_000;
/** From this many times `origo.loginFailuresPerName` failures on, many addresses guess at a name. */
const GUESSED_FACTOR = 10;
/** The attempts of one address then. */
const GUESSED_ATTEMPTS = 2;

export interface Attempt {
  name: string;
  address: string;
  /** The cookie that `deviceCookie` made, or anything else. */
  device: string | undefined;
}

export class LoginLimits {
  readonly #byWho: RateLimit;
  readonly #byName: RateLimit;
  readonly #byAddress: RateLimit;

  readonly #configuration: Pick<Configuration, "value">;
  readonly #deviceKey: string;

  /** `deviceKey` signs the device cookies. */
  constructor(configuration: Pick<Configuration, "value">, deviceKey: string) {
    this.#configuration = configuration;
    this.#deviceKey = deviceKey;

    const windowMs = (): number => 1000 * configuration.value("origo.loginWindowSec");
    const perName = (): number => configuration.value("origo.loginFailuresPerName");
    this.#byWho = new RateLimit({ limit: perName, windowMs, keysMax: KEYS_MAX });
    this.#byName = new RateLimit({ limit: () => GUESSED_FACTOR * perName(), windowMs, keysMax: KEYS_MAX });
    this.#byAddress = new RateLimit({
      limit: () => configuration.value("origo.loginFailuresPerAddress"),
      windowMs,
      keysMax: KEYS_MAX,
    });
  }

  /** How long this attempt has to wait. 0 when it may be made now; it then counts as failed until `noteSuccess`. */
  begin(attempt: Attempt, nowMs: number): number {
    const { name, address, isKnownDevice, who } = this.#read(attempt);
    const isGuessed = this.#byName.waitMs(name, nowMs) > 0;
    const perName = this.#configuration.value("origo.loginFailuresPerName");
    const limit = isGuessed && !isKnownDevice ? Math.min(GUESSED_ATTEMPTS, perName) : perName;
    const waitMs = Math.max(
      this.#byWho.waitMs(who, nowMs, limit),
      isKnownDevice ? 0 : this.#byAddress.waitMs(address, nowMs),
    );
    if (waitMs > 0) return waitMs;
    this.#byWho.add(who, nowMs);
    this.#byName.add(name, nowMs);
    if (!isKnownDevice) this.#byAddress.add(address, nowMs);
    return 0;
  }

  /** Whose place the check of a password takes, and whether it comes before those of strangers. */
  placeOf(attempt: Attempt): { key: string; goesFirst: boolean } {
    const { address, isKnownDevice, who } = this.#read(attempt);
    return { key: isKnownDevice ? who : address, goesFirst: isKnownDevice };
  }

  noteSuccess(attempt: Attempt, nowMs: number): void {
    const { name, address, isKnownDevice, who } = this.#read(attempt);
    this.#byWho.clear(who);
    this.#byName.add(name, nowMs, -1);
    if (!isKnownDevice) this.#byAddress.add(address, nowMs, -1);
  }

  /** A cookie for the browser in which this user has signed in. */
  deviceCookie(name: string): string {
    const id = randomBytes(16).toString("base64url");
    return `${id}.${this.#sign(name, id)}`;
  }

  #read({ name, address, device }: Attempt) {
    const [id = "", signature = ""] = device?.split(".") ?? [];
    const isKnownDevice = id !== "" && same(signature, this.#sign(name, id));
    const key = limitKeyOf(address);
    return { name, address: key, isKnownDevice, who: isKnownDevice ? `device ${id}` : JSON.stringify([name, key]) };
  }

  #sign(name: string, id: string): string {
    return createHmac("sha256", this.#deviceKey)
      .update(JSON.stringify([name, id]))
      .digest("base64url");
  }
}
