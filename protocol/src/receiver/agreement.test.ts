import { LIMITS, TIMING } from "../limits";
import { DigestAgreement, Patience, statementOf, verdictOf } from "./agreement";

describe("agreement: whose word counts", () => {
  test.each<[string, (string | undefined)[], string, string]>([
    ["nobody has spoken", [undefined, undefined], "unsaid", "unsaid"],
    ["one of two has spoken", ["a", undefined], "open", "a"],
    ["only one is asked", ["a"], "a", "a"],
    ["two of four agree", ["a", undefined, "a", undefined], "a", "a"],
    ["the first one lies", ["liar", "a", "a", undefined], "a", "a"],
    ["one against one, and others may speak", ["liar", "a", undefined], "open", "split"],
    ["one against one", ["a", "b"], "split", "split"],
    ["two against two", ["a", "a", "b", "b"], "split", "split"],
    ["two of four agree, and the others differ", ["a", "a", "b", "c"], "split", "split"],
    ["all differ", ["a", "b", "c", "d"], "split", "split"],
  ])("%s", (_, statements, now, later) => {
    const outcome = (mayWait: boolean): string => {
      const verdict = verdictOf(statements, mayWait);
      return verdict.kind === "decided" ? verdict.statement : verdict.kind;
    };
    expect([outcome(true), outcome(false)]).toEqual([now, later]);
  });

  test("plans that differ only in validators or in the length of the whole resource agree", () => {
    const plan = (status: number, range: string, etag: string) =>
      statementOf({ status, totalBytes: 10, headers: { etag, "content-range": range }, serverFetchMs: 0 });
    expect(plan(206, "bytes 0-9/100", '"a"')).toBe(plan(206, "bytes 0-9/200", 'W/"b"'));
    expect(plan(206, "bytes 0-9/100", '"a"')).not.toBe(plan(206, "bytes 1-10/100", '"a"'));
    expect(plan(200, "", '"a"')).not.toBe(plan(404, "", '"a"'));
  });

  test("the client waits once in all, and only while something waits", () => {
    const patience = new Patience();
    patience.note(true, 100);
    expect(patience.dueMs).toBe(100 + TIMING.confirmMs);
    patience.note(false, 400);
    expect([patience.dueMs, patience.mayWait(99_999)]).toEqual([undefined, true]);
    patience.note(true, 5000);
    expect(patience.dueMs).toBe(5000 + TIMING.confirmMs - 300);
    patience.note(true, 5700);
    expect([patience.dueMs, patience.mayWait(5700)]).toEqual([undefined, false]);
  });
});

const digest = (name: number): Uint8Array => new Uint8Array(LIMITS.digestBytes).fill(name);
const everybody = (): boolean => true;

describe("agreement: digests", () => {
  test("are decided in order, and a proxy that contradicts a decided one is named", () => {
    const agreement = new DigestAgreement(3);
    agreement.handleDigests(0, 0, [digest(1), digest(2)]);
    agreement.handleDigests(1, 0, [digest(1)]);
    expect(agreement.decideNext(everybody, true)).toBe("decided");
    expect(agreement.decideNext(everybody, true)).toBe("open");
    expect(agreement.isTrue(0, digest(1))).toBe(true);
    expect(agreement.isTrue(1, digest(2))).toBe(false);
    agreement.handleDigests(2, 0, [digest(9), digest(2)]);
    expect(agreement.takeDissenters()).toEqual([[2, 0]]);
    expect([agreement.takeDissenters(), agreement.outvotedAt]).toEqual([[], undefined]);
    agreement.forget(2);
    expect(agreement.countOf(2)).toBe(0);
  });

  test("of a frame that leaves a gap come again, and repeated ones count once", () => {
    const agreement = new DigestAgreement(1);
    agreement.handleDigests(0, 1, [digest(2)]);
    expect(agreement.countOf(0)).toBe(0);
    agreement.handleDigests(0, 0, [digest(1), digest(2)]);
    agreement.handleDigests(0, 0, [digest(7), digest(7), digest(3)]);
    expect(agreement.countOf(0)).toBe(3);
    for (const index of [0, 1, 2]) {
      expect(agreement.decideNext(everybody, true)).toBe("decided");
      expect(agreement.isTrue(index, digest(index + 1))).toBe(true);
    }
  });

  test("of a proxy that has not announced all earlier generations have no say", () => {
    const agreement = new DigestAgreement(3);
    agreement.handleDigests(0, 0, [digest(1), digest(2)]);
    agreement.handleDigests(1, 0, [digest(1), digest(2)]);
    agreement.handleDigests(2, 1, [digest(8)]);
    for (const index of [0, 1]) {
      expect(agreement.decideNext(everybody, true)).toBe("decided");
      expect(agreement.isTrue(index, digest(index + 1))).toBe(true);
    }
    expect(agreement.takeDissenters()).toEqual([]);
  });

  test("are outvoted when as many proxies contradict them as agree, and a new answer takes no vote back", () => {
    const agreement = new DigestAgreement(4);
    for (const index of [0, 1]) agreement.handleDigests(index, 0, [digest(1), digest(9)]);
    for (let n = 0; n < 2; n++) agreement.decideNext(everybody, true);
    agreement.forget(0);
    agreement.handleDigests(0, 0, [digest(7)]);
    agreement.handleDigests(2, 0, [digest(1), digest(2)]);
    expect(agreement.outvotedAt).toBeUndefined();
    agreement.handleDigests(3, 0, [digest(1), digest(2)]);
    expect(agreement.outvotedAt).toBe(1);
  });
});
