/** Step curves as SVG, in one colour each, with axes from zero. No I/O. */

export interface StepPlot {
  title: string;
  subtitle: string;
  x: string;
  y: string;
  /** Points in the order of x. A curve begins at (0, 0) and keeps each value until the next point. */
  curves: readonly { name: string; points: readonly (readonly [x: number, y: number])[] }[];
}

const [WIDTH, HEIGHT] = [720, 440];
const [LEFT, TOP, RIGHT, BOTTOM] = [64, 70, 690, 390];
const COLOURS = ["#222222", "#d55e00", "#0072b2"];
const TICKS = 6;

export function stepPlot({ title, subtitle, x, y, curves }: StepPlot): string {
  const points = curves.flatMap((curve) => curve.points);
  const [xTicks, yTicks] = [0, 1].map((axis) => ticksTo(Math.max(1, ...points.map((point) => point[axis]!))));
  const atX = (value: number): string => (LEFT + ((RIGHT - LEFT) * value) / xTicks!.at(-1)!).toFixed(1);
  const atY = (value: number): string => (BOTTOM - ((BOTTOM - TOP) * value) / yTicks!.at(-1)!).toFixed(1);
  const end = xTicks!.at(-1)!;
  const grid = [
    ...xTicks!.map((value) => tick(value, `M${atX(value)} ${TOP}V${BOTTOM}`, atX(value), BOTTOM + 18, "middle")),
    ...yTicks!.map((value) => tick(value, `M${LEFT} ${atY(value)}H${RIGHT}`, LEFT - 8, Number(atY(value)) + 4, "end")),
  ];
  const drawn = curves.map(({ name, points: own }, index) => {
    const steps = own.map(([px, py]) => `H${atX(px)}V${atY(py)}`).join("");
    const colour = COLOURS[index % COLOURS.length]!;
    const path = `<path d="M${LEFT} ${BOTTOM}${steps}H${atX(end)}" fill="none" stroke="${colour}" stroke-width="2"/>`;
    return `${path}\n${text(name, RIGHT, TOP - 34 + 15 * index, "end", 11, colour)}`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="sans-serif">
<rect width="${WIDTH}" height="${HEIGHT}" fill="white"/>
${[...grid, ...drawn].join("\n")}
${text(title, LEFT, 30, "start", 16, "#222222")}
${text(subtitle, LEFT, 50, "start", 12, "#555555")}
${text(x, (LEFT + RIGHT) / 2, HEIGHT - 14, "middle", 12, "#444444")}
<g transform="translate(18 ${(TOP + BOTTOM) / 2}) rotate(-90)">${text(y, 0, 0, "middle", 12, "#444444")}</g>
</svg>
`;
}

/** Round numbers from 0 to the first one that is not below `most`. */
function ticksTo(most: number): number[] {
  const rough = most / TICKS;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((each) => each >= rough)!;
  return Array.from({ length: Math.ceil(most / step) + 1 }, (_, index) => Number((index * step).toPrecision(6)));
}

const tick = (value: number, path: string, x: number | string, y: number, anchor: string): string =>
  `<path d="${path}" stroke="#eeeeee"/>${text(String(value), x, y, anchor, 11, "#444444")}`;

function text(words: string, x: number | string, y: number, anchor: string, size: number, colour: string): string {
  const escaped = words.replace(/[&<>]/g, (character) => `&#${character.charCodeAt(0)};`);
  return `<text x="${x}" y="${y}" text-anchor="${anchor}" font-size="${size}" fill="${colour}">${escaped}</text>`;
}
