/**
 * Cache control: how long a shared cache may keep a response, by RFC 9111. The proxy never revalidates, so it keeps
 * nothing for long.
 */
const KEEP_MS_MAX = 60_000;
const FORBIDDING = ["no-store", "private", "no-cache"];

/** Milliseconds from now. 0 means that the response is shared only while it is being fetched. */
export function keepMsOf(status: number, headers: Record<string, string>): number {
  if (status !== 200 && status !== 206) return 0;
  if (headers["vary"]?.includes("*")) return 0;
  const directives = directivesOf(headers["cache-control"] ?? "");
  if (FORBIDDING.some((name) => directives.has(name))) return 0;
  const seconds = directives.get("s-maxage") ?? directives.get("max-age");
  if (seconds === undefined) return headers["expires"] === undefined ? KEEP_MS_MAX : untilMs(headers["expires"]);
  const ageSeconds = Number(headers["age"] ?? 0) || 0;
  return clamp((Number(seconds) - ageSeconds) * 1000);
}

function directivesOf(value: string): Map<string, string> {
  const directives = new Map<string, string>();
  for (const part of value.toLowerCase().split(",")) {
    const [name = "", argument = ""] = part.trim().split("=");
    directives.set(name, argument.replace(/"/g, ""));
  }
  return directives;
}

function untilMs(date: string): number {
  return clamp(Date.parse(date) - Date.now());
}

function clamp(ms: number): number {
  return Number.isNaN(ms) ? 0 : Math.min(Math.max(ms, 0), KEEP_MS_MAX);
}
