import { isRejectionKind, REJECTION_KINDS, rejectionOf } from "./rejections";

test("rejections: every kind is listed once, and is short enough for a frame and a record", () => {
  expect(new Set(REJECTION_KINDS).size).toBe(REJECTION_KINDS.length);
  for (const kind of REJECTION_KINDS) expect(kind).toMatch(/^[a-zA-Z0-9]{1,64}$/);
});

test("rejections: a kind of another version becomes unknown, and its message begins with that kind", () => {
  expect(rejectionOf("proxySilent", "Nothing came.")).toEqual({ kind: "proxySilent", message: "Nothing came." });
  expect(rejectionOf("moonEclipsed", "No light.")).toEqual({ kind: "unknown", message: "moonEclipsed: No light." });
  expect(["toString", "constructor", "__proto__", ""].map(isRejectionKind)).toEqual([false, false, false, false]);
});
