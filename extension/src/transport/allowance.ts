/**
 * Allowance: how many requests a host may get in a while, by page origin and host. A site can count the requests that
 * carry a viewer's key (a token, a signature), and those of the proxies count, too. So with a key the host gets few
 * requests at first, and more after a while without a refusal. Without a key a site counts by network address, and
 * proxies have addresses of their own. Pure: time arrives as `nowMs`.
 */
import { keepLatest } from "../shared/keep-latest";

export const WINDOW_MS = 10_000;
/** At first, the proxies are not asked if the host would get more requests than this within WINDOW_MS. */
export const REQUESTS_AT_FIRST = 10;
/** After this long at its bound, a host gets half as many again. */
export const GROW_MS = 30_000;
const REQUESTS_MAX = 1000;
const HOSTS_MAX = 256;
/** A host that says that it has room for fewer requests than this is limiting the viewer. */
export const ROOM_MIN = 1000;

interface Taken {
  /** When the requests of the last WINDOW_MS came. */
  timesMs: number[];
  max: number;
  boundSinceMs: number | null;
}

export class Allowance {
  readonly #hosts = new Map<string, Taken>();

  /** `count` requests go to the host. What a page does by itself shows what the host takes. */
  note(place: string, count: number, nowMs: number): void {
    const taken = this.#of(place, nowMs);
    for (let left = Math.min(count, REQUESTS_MAX); left > 0; left--) taken.timesMs.push(nowMs);
    taken.timesMs.splice(0, Math.max(0, taken.timesMs.length - REQUESTS_MAX));
    taken.max = Math.max(taken.max, taken.timesMs.length);
    keepLatest(this.#hosts, place, taken, HOSTS_MAX);
  }

  /** Whether `count` more requests with the key in `url` are few enough. */
  allows(place: string, url: URL, count: number, nowMs: number): boolean {
    if (!hasKey(url)) return true;
    const taken = this.#of(place, nowMs);
    if (taken.timesMs.length + count <= taken.max) return true;
    taken.boundSinceMs ??= nowMs;
    if (nowMs - taken.boundSinceMs >= GROW_MS) {
      taken.max = Math.min(REQUESTS_MAX, Math.ceil(1.5 * taken.max));
      taken.boundSinceMs = null;
    }
    keepLatest(this.#hosts, place, taken, HOSTS_MAX);
    return false;
  }

  #of(place: string, nowMs: number): Taken {
    const { timesMs = [], max = REQUESTS_AT_FIRST, boundSinceMs = null } = this.#hosts.get(place) ?? {};
    return { timesMs: timesMs.filter((atMs) => nowMs - atMs < WINDOW_MS), max, boundSinceMs };
  }
}

const KEY_NAME =
  /[?&/;~,][\w.-]*(?:tok|sig|auth|key|sess|policy|expire|hmac|hdn|jwt|cred|ticket|hash|md5|pass|user|uid|sid)[\w.-]*=/i;
const VALUE_CHARS_MIN = 16;

/** Whether the address seems to hold something that tells one viewer from another. */
export function hasKey({ pathname, search, searchParams }: URL): boolean {
  const isRandom = (value: string): boolean =>
    value.length >= VALUE_CHARS_MIN && /\d/.test(value) && /[a-z]/i.test(value) && !/\s|:\/\//.test(value);
  return KEY_NAME.test(pathname + search) || [...searchParams.values()].some(isRandom);
}

/**
 * Whether an answer says that the host limits the rate of requests: `RateLimit` (draft-ietf-httpapi-ratelimit-headers)
 * in its forms so far, and the headers from before it. A limit that is far away does not count.
 */
export function tellsLimit(headers: Readonly<Record<string, string>>): boolean {
  const { ratelimit = "" } = headers;
  const room = [
    /\b(?:r|remaining)\s*=\s*(\d+)/i.exec(ratelimit)?.[1],
    ...["ratelimit-remaining", "x-ratelimit-remaining", "x-rate-limit-remaining"].map((name) => headers[name]),
  ].find((value) => value !== undefined && /^\d+$/.test(value.trim()));
  return room !== undefined && Number(room) < ROOM_MIN;
}
