/** What a person reads: the table on the terminal, and the section of docs/measurements.md. Pure: text out. */
import { markdownTable } from "@tributary/lab-stack";
import type { Figure } from "./figures";
import { verdictOf } from "./figures";
import type { Row } from "./rows";

export interface Machine {
  readonly processor: string;
  readonly cores: number;
  readonly features: readonly string[];
  readonly system: string;
  readonly compiler: string;
  readonly node: string;
  readonly chromium: string;
}

export interface Run {
  readonly date: string;
  readonly command: string;
  readonly rounds: number;
  readonly machine: Machine;
  /** Name and version of each rival, or why it is absent. */
  readonly rivals: readonly string[];
  readonly wasmModules: readonly { name: string; bytes: number }[];
  readonly figures: readonly Figure[];
  readonly rows: readonly Row[];
}

function amount(unit: Figure["unit"], value: number | undefined): string {
  if (value === undefined) return "-";
  if (unit === "x") return `${value < 10 ? value.toFixed(2) : value.toFixed(1)}x`;
  return `${value.toFixed(1)} ${unit}`;
}

/** A limit as the figure's author wrote it: no digits added. */
const limit = (unit: Figure["unit"], value: number): string => (unit === "x" ? `${value}x` : `${value} ${unit}`);

const cells = (figure: Figure): string[] => [
  figure.what,
  amount(figure.unit, figure.value),
  limit(figure.unit, figure.floor),
  limit(figure.unit, figure.aim),
  verdictOf(figure),
];

/** The figures as a table of fixed columns. */
export function terminalTable(figures: readonly Figure[]): string {
  const table = [["what", "value", "floor", "aim", ""], ...figures.map(cells)];
  const widths = table[0]!.map((_, column) => Math.max(...table.map((line) => line[column]!.length)));
  return table
    .map((line) =>
      line
        .map((cell, column) =>
          column === 0 || column === 4 ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!),
        )
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

const megabytes = (bytesPerSec: number): string => Math.round(bytesPerSec / 1e6).toLocaleString("en");

function shortfalls(figures: readonly Figure[]): string {
  const named = (verdict: string): string[] =>
    figures
      .filter((figure) => verdictOf(figure) === verdict)
      .map(
        (figure) =>
          `- ${figure.what}: ${amount(figure.unit, figure.value)}, floor ${limit(figure.unit, figure.floor)}${figure.note ? ` (${figure.note})` : ""}`,
      );
  const [missed, unmeasured] = [named("NOT MET"), named("not measured")];
  const parts = [
    missed.length > 0
      ? `Under the floor in this run:\n\n${missed.join("\n")}`
      : "No figure is under its floor in this run.",
    unmeasured.length > 0 ? `Not measured in this run:\n\n${unmeasured.join("\n")}` : "",
  ];
  return parts.filter(Boolean).join("\n\n");
}

function rowLine(row: Row): string[] {
  const who = row.rival ?? (row.throughAddon ? "ours, through the addon" : "ours");
  return [
    who,
    row.engine === "-" ? "" : row.engine,
    row.runtime,
    row.request,
    String(row.outputs),
    megabytes(row.outputBytesPerSec),
    row.rival === "memcpy" ? "" : (row.gfBytesPerSec / 1e9).toFixed(1),
  ];
}

function rateTables(rows: readonly Row[]): string {
  const groups = [...new Set(rows.map((row) => row.group))].filter(
    (group) => !group.startsWith("grid ") && !group.endsWith("against rlnc"),
  );
  return groups
    .map((group) => {
      const lines = rows
        .filter((row) => row.group === group)
        .sort((a, b) => b.outputBytesPerSec - a.outputBytesPerSec)
        .map(rowLine);
      return `#### ${group}\n\n${markdownTable(["who", "engine or path", "runtime", "timed", "outputs", "MB/s", "GF GB/s"], lines)}`;
    })
    .join("\n\n");
}

/** The section `## Codec`; `picture` is the path of the image from the document. */
export function markdownSection(run: Run, picture: string): string {
  const { machine } = run;
  return `## Codec

Made by \`${run.command}\` on ${run.date}, in one run: every comparison in turns (A B A B, ${run.rounds} rounds), medians of rounds, single thread. Where both sides of a ratio were measured in turns, other load on the machine reaches both alike; MB/s are this machine's.

${markdownTable(
  ["machine", ""],
  [
    ["processor", `${machine.processor}, ${machine.cores} cores; ${machine.features.join(", ")}`],
    ["system", machine.system],
    ["compiler", machine.compiler],
    ["runtimes", `node ${machine.node}, ${machine.chromium}`],
    ["rivals", run.rivals.join("; ")],
    [
      "WASM modules",
      run.wasmModules.map(({ name, bytes }) => `${name} ${bytes.toLocaleString("en")} bytes`).join(", "),
    ],
  ],
)}

### Figures to reach

${markdownTable(
  ["what", "value", "floor", "aim", "", "note"],
  run.figures.map((figure) => [...cells(figure), figure.note]),
)}

${shortfalls(run.figures)}

![Bandwidth against generation size and symbol size, and by engine and rival](${picture})

### How it is measured

- Tables and coefficients are made inside the timed region: ours from fresh seeds, ISA-L's with \`ec_init_tables\` from ready coefficients. Taking the sources in is outside it: the core copies them into aligned rows once a generation, and ISA-L is handed rows aligned in the same way, without a copy. \`encode-packed\` is ISA-L on symbols that lie back to back.
- \`decode\` is a decoder's whole life: made, fed dense coded symbols until full rank, read. ISA-L: \`gf_invert_matrix\`, \`ec_init_tables\`, \`ec_encode_data\`. \`reed-solomon-simd\`: all originals from recovery shards. \`raptorq\`: repair symbols only, two more than source symbols.
- \`decode-last\` begins when the last innovative symbol arrives and ends when all source symbols are in the caller's buffer. \`encode-cold\` walks over 96 MB of generations. \`encode-flow\` writes into 4 MB of buffers in turns: as many batches are in flight through the addon, and where the nearest caches are smaller, that alone is slower than a single buffer.
- WebAssembly is called as the client calls it, copies into and out of the module's memory included, in Chromium in a Worker.
- Results of decoders are compared with the source, ISA-L's coded symbols with ours, before anything is timed.
- \`roofline\` computes nothing: multiply-adds by \`vgf2p8affineqb\` and XOR at the vector unit's peak, on a processor without GFNI by two \`vpshufb\` and two XORs; from registers alone, and with a load from the L1 cache for each, which one output at a time cannot avoid. For \`decode\`: the g x g x bytes of a dense product, without elimination and copies. In Chromium it is two look-ups and two XORs a multiply-add: by swizzles of registers, or by loads from the L1 cache (\`sums\`), as the SIMD modules do it.
- GF GB/s are output bytes times g. For \`raptorq\` and \`reed-solomon-simd\`, which do not multiply by a dense matrix, they measure use, not work.

### Rates

${rateTables(run.rows)}
`;
}
