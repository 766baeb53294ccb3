/**
 * Fault: turns what a schema found wrong into an error that names the field, what the field must be, and the value that
 * it has.
 */
import type { z } from "zod";
import type { ApiError } from "./schema";

const SHOWN_CHARS_MAX = 80;
/** A value under such a name is not repeated: it is secret, or says what somebody watches. */
const HIDDEN = /password|token|code|signature|url/i;

/** The first fault, for the sender of `input`: the path of the field, what the field must be, and the value. */
export function faultOf(error: z.ZodError, input?: unknown): ApiError {
  const issue = error.issues[0];
  if (issue === undefined) return { kind: "badField", message: "refused" };
  const isUnknown = issue.code === "unrecognized_keys";
  const path = isUnknown ? [...issue.path, issue.keys[0] ?? ""] : issue.path;
  const field = path
    .map((part, index) => (typeof part === "number" ? `[${part}]` : index === 0 ? part : `.${part}`))
    .join("");
  const more = error.issues.length > 1 ? ` (and ${error.issues.length - 1} more)` : "";
  const message = isUnknown ? "unknown field" : issue.message + gotOf(issue, path, input);
  return {
    kind: "badField",
    message: `${field === "" ? "body" : field}: ${message}${more}`,
    ...(field === "" ? {} : { field }),
  };
}

/** `, got VALUE`, unless the message says so, or nobody may see the value, or it is missing. */
function gotOf({ message }: z.ZodIssue, path: readonly (string | number)[], input: unknown): string {
  if (/\b(got|received)\b/.test(message) || path.some((part) => HIDDEN.test(String(part)))) return "";
  const value = path.reduce<unknown>(
    (found, part) =>
      typeof found === "object" && found !== null ? (found as Record<string, unknown>)[part] : undefined,
    input,
  );
  return value === undefined ? "" : `, got ${shown(value)}`;
}

/** A value as an error repeats it. */
export function shown(value: unknown): string {
  if (Array.isArray(value)) return `${value.length} items`;
  if (typeof value === "object" && value !== null) return "an object";
  const text = typeof value === "string" ? JSON.stringify(value) : String(value);
  return text.length <= SHOWN_CHARS_MAX ? text : `${text.slice(0, SHOWN_CHARS_MAX)}… (${text.length} characters)`;
}
