/** The linear solver HiGHS (Huangfu, Hall 2018), as WebAssembly. */
import load from "highs";
import type { LinearSolver } from "./packing";

export async function loadHighs(): Promise<LinearSolver> {
  const highs = await load();
  return ({ gains, rows }) => {
    const terms = (of: Iterable<readonly [number, number]>): string =>
      [...of].map(([column, value]) => `+ ${value} x${column}`).join(" ");
    const { Status, ObjectiveValue, Columns, Rows } = highs.solve(
      [
        "Maximize",
        `gain: ${terms(gains.entries())}`,
        "Subject To",
        ...rows.map(({ of, limit }, row) => `r${row}: ${terms(of)} <= ${limit}`),
        "End",
      ].join("\n"),
    );
    if (Status !== "Optimal") throw new Error(`the linear program has no optimum: ${Status}`);
    return {
      gain: ObjectiveValue,
      values: gains.map((_, column) => Columns[`x${column}`]?.Primal ?? 0),
      prices: rows.map((_, row) => dualOf(Rows[row]!)),
    };
  };
}

const dualOf = (row: object): number => ("Dual" in row ? Number(row.Dual) : 0);
