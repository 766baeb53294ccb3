/**
 * Environment: finds variables of the environment that are probably misspelt names of ours. Foreign variables are no
 * concern of ours, so only near misses count.
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
): string[] {
  const names = new Set(known);
  return Object.keys(env).flatMap((name) => {
    if (!env[name] || names.has(name)) return [];
    const prefix = prefixes.find((each) => name.startsWith(each));
    const bare = prefix === undefined ? name : name.slice(prefix.length);
    const near = nearest(name, known) ?? (names.has(bare) ? bare : nearest(bare, known));
    if (near !== undefined) return [`${name} is not a variable of this program: did you mean ${near}?`];
    return prefix !== undefined ? [`${name} is not a variable of this program, so it has no effect`] : [];
  });
}

/** What a file of variables leaves in a value when its reader takes it literally, as `docker run --env-file` does. */
const ODD: readonly (readonly [RegExp, string])[] = [
  [/^(["']).*\1\s*$/s, "must not have quotes around it"],
  [/^\s|\s$/, "must not have spaces or line ends at its ends"],
  [/\p{Cc}/u, "must not have control characters"],
];

/** Finds the first of the variables `known` whose value has a probable mistake. `fault` says what it must not have. */
export function oddValue(
  env: Readonly<Record<string, string | undefined>>,
  known: readonly string[],
): { name: string; fault: string } | undefined {
  for (const name of known) {
    const fault = ODD.find(([odd]) => odd.test(env[name] ?? ""))?.[1];
    if (fault !== undefined) return { name, fault };
  }
  return undefined;
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
