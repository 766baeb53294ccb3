import { sittingsText } from "./sitting";

test("sittings: the line names the days, and each machine with its share", () => {
  const sitting = { date: "2026-01-03", commit: "abc", machine: "m, 4 cores, Linux 6, node 20" };
  const other = { ...sitting, date: "2026-01-02", machine: "m, 2 cores, Linux 7" };
  expect(sittingsText([sitting, other], [3, 1])).toBe("2026-01-02 to 2026-01-03, m, 4 cores (75 %), m, 2 cores (25 %)");
  expect(sittingsText([sitting], [3])).toBe("2026-01-03, m, 4 cores");
});
