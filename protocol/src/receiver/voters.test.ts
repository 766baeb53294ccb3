import { LIMITS } from "../limits";
import { DigestAgreement, verdictOf } from "./agreement";
import { isDoubtful, isOutvoted, votersOf, wordsOf, type Word } from "./voters";

/** Operators a and b run the proxies of these names. */
const voters = (names: string) => votersOf(names.length, [...names]);

describe("voters: what proxies of one operator say counts once", () => {
  test.each<[string, string, (string | undefined)[], string, string]>([
    ["two of one operator, and the other is silent", "aab", ["x", "x", undefined], "open", "x"],
    ["both operators agree", "aab", ["x", undefined, "x"], "x", "x"],
    ["three of one operator against one of another", "aaab", ["x", "x", "x", "y"], "split", "split"],
    ["one liar among two proxies of one operator", "aabb", ["x", "liar", "x", "x"], "x", "x"],
    ["one hacked proxy of one operator and a liar of the other", "aaab", ["x", "x", "liar", "liar"], "split", "split"],
    ["each operator has one liar", "aabb", ["x", "liar", "x", "liar"], "split", "split"],
    ["one operator runs all", "aaa", ["x", "x", "liar"], "x", "x"],
    ["two of three operators agree", "abc", ["x", "liar", "x"], "x", "x"],
  ])("%s", (_, names, statements, now, later) => {
    const outcome = (mayWait: boolean): string => {
      const verdict = verdictOf(statements, mayWait, voters(names));
      return verdict.kind === "decided" ? verdict.statement : verdict.kind;
    };
    expect([outcome(true), outcome(false)]).toEqual([now, later]);
  });

  const WORDS: Record<string, Word> = { "+": "agrees", "-": "opposes", "?": "silent", "0": undefined };
  test.each<[names: string, words: string, isOutvotedNow: boolean, mayBe: boolean]>([
    ["aabb", "++++", false, false],
    ["aabb", "+-++", false, false],
    ["aabb", "+-+-", true, true],
    ["aaab", "+--+", true, true],
    ["aabb", "+?++", false, false],
    ["aabb", "+?+?", false, true],
    ["aab", "++?", false, true],
    ["aab", "++0", false, false],
  ])("operators %s say %s", (names, words, isOutvotedNow, mayBe) => {
    const said = wordsOf([...words].map((word) => WORDS[word]), voters(names)); // prettier-ignore
    expect([isOutvoted(said), isDoubtful(said)]).toEqual([isOutvotedNow, mayBe]);
  });

  test("digests: an operator that comes with many proxies is one voice, and only two operators vouch", () => {
    const digest = (name: number) => new Uint8Array(LIMITS.digestBytes).fill(name);
    const agreement = new DigestAgreement(4, ["a", "a", "a", "b"]);
    for (const index of [0, 1, 2]) agreement.handleDigests(index, 0, [digest(1)]);
    expect(agreement.decideNext(() => true, true)).toBe("open");
    agreement.handleDigests(3, 0, [digest(1), digest(2)]);
    expect(agreement.decideNext(() => true, true)).toBe("decided");
    expect(agreement.agreeingOperators).toBe(2);
    for (const index of [0, 1, 2]) agreement.handleDigests(index, 1, [digest(3)]);
    expect(agreement.decideNext(() => true, true)).toBe("split");
    expect(agreement.decideNext((index) => index < 3, true)).toBe("decided");
    expect(agreement.agreeingOperators).toBe(1);
  });
});
