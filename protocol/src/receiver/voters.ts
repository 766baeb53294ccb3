/**
 * Voters: whose word counts in a request. Proxies of one operator are one voter, since whoever runs them all can have
 * them all say the same. A voter says what most of its proxies say; if they are split evenly it says both, and others
 * decide. If one operator runs all proxies, each proxy is a voter, and nobody vouches for what they agree on. Pure.
 * Rules: protocol.md §9.1.
 */

/** What one proxy says about a statement: that it holds, that another one does, or nothing yet. Undefined: never. */
export type Word = "agrees" | "opposes" | "silent" | undefined;

/** How many voters agree with what is decided or contradict it, so far and at worst. */
export interface Words {
  agreeing: number;
  opposing: number;
  agreeingAtLeast: number;
  opposingAtMost: number;
}

/** The voter of each proxy. `operators`: the operator of each proxy; undefined counts each proxy. */
export function votersOf(proxyCount: number, operators: readonly string[] | undefined): readonly number[] {
  const names = [...new Set(operators)];
  return Array.from({ length: proxyCount }, (_, index) =>
    names.length > 1 ? names.indexOf(operators![index]!) : index,
  );
}

/** What the voters say: by statement, how many say it. `spoken` counts those that have said anything. */
export function votes(
  statements: readonly (string | undefined)[],
  voters: readonly number[],
): { counts: Map<string, number>; spoken: number } {
  const byVoter = new Map<number, Map<string, number>>();
  statements.forEach((statement, index) => {
    if (statement === undefined) return;
    const said = byVoter.get(voters[index]!) ?? new Map<string, number>();
    byVoter.set(voters[index]!, said.set(statement, (said.get(statement) ?? 0) + 1));
  });
  const counts = new Map<string, number>();
  for (const said of byVoter.values()) {
    const most = Math.max(...said.values());
    for (const [statement, count] of said) if (count === most) counts.set(statement, (counts.get(statement) ?? 0) + 1);
  }
  return { counts, spoken: byVoter.size };
}

export function wordsOf(words: readonly Word[], voters: readonly number[]): Words {
  const byVoter = new Map<number, { agrees: number; opposes: number; silent: number }>();
  words.forEach((word, index) => {
    if (word === undefined) return;
    const said = byVoter.get(voters[index]!) ?? { agrees: 0, opposes: 0, silent: 0 };
    byVoter.set(voters[index]!, said);
    said[word]++;
  });
  const all = [...byVoter.values()];
  const count = (isSo: (said: { agrees: number; opposes: number; silent: number }) => boolean) =>
    all.filter(isSo).length;
  return {
    agreeing: count(({ agrees, opposes }) => agrees > 0 && agrees >= opposes),
    opposing: count(({ agrees, opposes }) => opposes > 0 && opposes >= agrees),
    agreeingAtLeast: count(({ agrees, opposes, silent }) => agrees > 0 && agrees >= opposes + silent),
    opposingAtMost: count(({ agrees, opposes, silent }) => opposes + silent > 0 && opposes + silent >= agrees),
  };
}

/** Whether as many voters contradict what is decided as agree with it. */
export const isOutvoted = ({ agreeing, opposing }: Words): boolean => opposing > 0 && opposing >= agreeing;

/** Whether what is decided may still be outvoted. */
export const isDoubtful = ({ agreeingAtLeast, opposingAtMost }: Words): boolean => opposingAtMost >= agreeingAtLeast;
