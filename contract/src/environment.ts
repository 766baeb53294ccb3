/**
 * Environment: finds variables of the environment that are probably misspelt names of ours, and values that a file of
 * variables has spoiled. Foreign variables are no concern of ours, so only near misses count.
 */

/** So many letters may be wrong, missing, added or swapped with their neighbour. */
const EDITS_MAX = 2;
/** A shorter name is near too many foreign ones: HOST is near HOME. */
const CHARS_MIN = 6;

/**
 * One line for each variable that is set and not in `known`, but near a known name or with one of `prefixes`.
 */
export function misspeltVariables(
  env: Readonly<Record<string, string | undefined>>,
  known: readonly string[],
  prefixes: readonly string[] = [],
  whose = "this program",
): string[] {
  const names = new Set(known);
  return Object.keys(env).flatMap((name) => {
    if (!env[name] || names.has(name)) return [];
    const plain = name.replace(DECORATION, "");
    const prefix = prefixes.find((each) => plain.toUpperCase().startsWith(each));
    const bare = prefix === undefined ? plain : plain.slice(prefix.length);
    const near = [plain, bare].find((each) => names.has(each)) ?? nearest(plain, known) ?? nearest(bare, known);
    const told = `${visible(name)} is not a variable of ${whose}`;
    if (near !== undefined) return [`${told}: did you mean ${near}?`];
    return prefix !== undefined ? [`${told}, so it has no effect`] : [];
  });
}

/** What a file of variables leaves in a name when its reader takes it literally: `export`, a mark of UTF-8, spaces. */
const DECORATION = /^[\uFEFF\s]*(export\s+)?|\s+$/g;

/** The name as it is, or quoted with its invisible characters as escapes. */
const visible = (name: string): string =>
  /^[\w.-]+$/.test(name)
    ? name
    : JSON.stringify(name).replace(/[^\x20-\x7e]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);

/** What a file of variables leaves in a value when its reader takes it literally, as `docker run --env-file` does. */
const ODD: readonly (readonly [RegExp, string])[] = [
  [/^(["']).*\1\s*$/s, "must not have quotes around it"],
  [/^\s|\s$/, "must not have spaces or line ends at its ends"],
  [/\p{Cc}/u, "must not have control characters"],
  [/\s#\s/, "must not have a comment after it"],
  [/^~(\/|$)/, "must be written out: nothing replaces ~ in it"],
];

/** What a mistake leaves in a value too, but a generator of passwords may put there. */
const DOUBTFUL: readonly (readonly [RegExp, string])[] = [
  [/^=/, "begins with =, which is part of the value"],
  [/^\$[A-Za-z_]|\$\{[A-Za-z_]\w*\}/, "has $ before a word, which is part of the value: nothing replaces it"],
];

/** References as a shell and Docker Compose write them. One letter is too likely in a password. */
const REFERENCE = /\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w+))/g;
/** POSIX.1-2017 §8.1: the names of variables that programs use have no lower-case letters. */
const POSIX_NAME = /^[A-Z_][A-Z0-9_]*$/;

/** Finds the first of the variables `known` whose value has a mistake. `fault` says what it must not have. */
export function oddValue(
  env: Readonly<Record<string, string | undefined>>,
  known: readonly string[],
): { name: string; fault: string } | undefined {
  const isVariable = (name: string): boolean => known.includes(name) || Boolean(env[name]);
  for (const name of known) {
    const value = env[name] ?? "";
    const left = [...value.matchAll(REFERENCE)].find(
      ([, braced, bare]) => (braced !== undefined && POSIX_NAME.test(braced)) || isVariable((braced ?? bare)!),
    );
    const fault = value.startsWith(`${name}=`)
      ? "must not begin with its own name"
      : left
        ? `must be written out: nothing replaces ${left[0]} in it`
        : ODD.find(([odd]) => odd.test(value))?.[1];
    if (fault !== undefined) return { name, fault };
  }
  return undefined;
}

/**
 * One line for each of the variables `known` whose value is taken as it is, though it may have a mistake. No line holds
 * any of the value, which may be a secret.
 */
export function doubtfulValues(env: Readonly<Record<string, string | undefined>>, known: readonly string[]): string[] {
  return known.flatMap((name) =>
    DOUBTFUL.filter(([doubtful]) => doubtful.test(env[name] ?? "")).map(([, told]) => `the value of ${name} ${told}`),
  );
}

function nearest(name: string, known: readonly string[]): string | undefined {
  if (name.length < CHARS_MIN) return undefined;
  const found = known
    .filter((each) => each.length >= CHARS_MIN)
    .map((each) => ({ each, edits: editsBetween(name.toUpperCase(), each) }))
    .filter(({ edits }) => edits <= EDITS_MAX)
    .sort((a, b) => a.edits - b.edits);
  return found[0]?.each;
}

/** Optimal string alignment distance (Boytsov 2011, "Indexing methods for approximate dictionary searching"). */
function editsBetween(a: string, b: string): number {
  let [before, last] = [[] as number[], Array.from({ length: b.length + 1 }, (_, index) => index)];
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const change = last[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      row.push(Math.min(change, last[j]! + 1, row[j - 1]! + 1, swapped ? before[j - 2]! + 1 : Infinity));
    }
    [before, last] = [last, row];
  }
  return last[b.length]!;
}
