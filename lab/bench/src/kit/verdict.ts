/** Figures that a bench is to reach, and whether it does. */
import { table } from "./table";

export interface Figure {
  what: string;
  /** NaN: not measured. */
  got: number;
  unit: string;
  /** `nearOne`: floor and aim are factors, and allow as much on either side of 1. */
  better: "more" | "less" | "nearOne";
  /** undefined: the value is shown for comparison only. */
  floor?: number;
  aim?: number;
  /** The best value that the links allow. undefined: not known. */
  wire?: number;
  /** Floor and aim hold for longer runs than this one. */
  tooShort?: boolean;
  /** What a reader must know to weigh the value. */
  note?: string;
}

/** `limits`: floor and aim, as far as there are any. */
type MakeFigure = (what: string, got: number, limits: readonly number[], rest?: Partial<Figure>) => Figure;

const figureThatIs =
  (better: Figure["better"]): MakeFigure =>
  (what, got, [floor, aim], rest = {}) => ({
    what,
    got,
    unit: "",
    better,
    ...(floor === undefined ? {} : { floor }),
    ...(aim === undefined ? {} : { aim }),
    ...rest,
  });

export const atLeast = figureThatIs("more");
export const atMost = figureThatIs("less");

export type Verdict = "" | "aim met" | "met" | "NOT MET" | "not measured" | "too short" | "beyond the wire";

export function verdictOf({ got, floor, aim, better, wire, tooShort = false }: Figure): Verdict {
  if (!Number.isFinite(got)) return "not measured";
  if (floor === undefined) return "";
  if (tooShort) return "too short";
  const meets = (value: number, limit: number): boolean => {
    if (better === "nearOne") return value <= limit && value >= 1 / limit;
    return better === "more" ? value >= limit : value <= limit;
  };
  if (aim !== undefined && meets(got, aim)) return "aim met";
  if (meets(got, floor)) return "met";
  return wire !== undefined && !meets(wire, floor) ? "beyond the wire" : "NOT MET";
}

export const isMet = (figure: Figure): boolean => ["met", "aim met"].includes(verdictOf(figure));

const number = (value: number): string => {
  if (!Number.isFinite(value)) return "-";
  return Number.isInteger(value) ? String(value) : value.toFixed(Math.abs(value) >= 20 ? 0 : 2);
};

/** A limit is shown as its author wrote it. */
const limitOf = (figure: Figure, limit: number | undefined): string =>
  limit === undefined ? "" : figure.better === "nearOne" ? `${number(1 / limit)} .. ${limit}` : String(limit);

/** Columns that no figure fills are left out. */
export function figureTable(figures: readonly Figure[]): string {
  if (figures.length === 0) return "None were measured.";
  const columns: [string, (figure: Figure) => string][] = [
    ["what", ({ what }) => what],
    ["got", ({ got, unit }) => (Number.isFinite(got) ? `${number(got)}${unit}` : "-")],
    ["floor", (figure) => limitOf(figure, figure.floor)],
    ["aim", (figure) => limitOf(figure, figure.aim)],
    ["verdict", verdictOf],
    ["wire", ({ wire }) => (wire === undefined ? "" : number(wire))],
    ["note", ({ note = "" }) => note],
  ];
  const used = columns.filter(([, cellOf]) => figures.some((figure) => cellOf(figure) !== ""));
  return table(
    used.map(([title]) => title),
    figures.map((figure) => used.map(([, cellOf]) => cellOf(figure))),
  );
}
