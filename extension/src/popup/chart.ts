/**
 * Chart: the rates of all proxies over the last 30 seconds, stacked, as SVG paths. Only `drawChart` touches a document.
 */
import type { Stream } from "./rates";

const READINGS_MAX = 60;
const WIDTH = 300;
const HEIGHT = 48;
export const COLOURS = ["#0d9488", "#2563eb", "#9333ea", "#db2777", "#d97706", "#65a30d", "#0891b2", "#64748b"];

export class History {
  readonly #readings: Map<string, number>[] = [];

  add(streams: readonly Stream[]): void {
    this.#readings.push(new Map(streams.map(({ id, bytesPerSec }) => [id, bytesPerSec])));
    if (this.#readings.length > READINGS_MAX) this.#readings.shift();
  }

  /**
   * One closed path per proxy, the first one at the bottom and the newest reading at the right edge. Empty while no
   * bytes arrive.
   */
  paths(ids: readonly string[]): string[] {
    const totals = this.#readings.map((reading) => ids.reduce((sum, id) => sum + (reading.get(id) ?? 0), 0));
    const highest = Math.max(...totals, 0);
    if (highest === 0 || this.#readings.length < 2) return [];
    const floor = this.#readings.map(() => 0);
    return ids.map((id) => {
      const below = this.#readings.map((_, index) => this.#point(index, (floor[index] ?? 0) / highest));
      this.#readings.forEach((reading, index) => (floor[index] = (floor[index] ?? 0) + (reading.get(id) ?? 0)));
      const above = this.#readings.map((_, index) => this.#point(index, (floor[index] ?? 0) / highest));
      return `M${[...above, ...below.reverse()].join("L")}Z`;
    });
  }

  #point(index: number, part: number): string {
    const x = WIDTH - ((this.#readings.length - 1 - index) * WIDTH) / (READINGS_MAX - 1);
    return `${x.toFixed(1)} ${(HEIGHT * (1 - part)).toFixed(1)}`;
  }
}

export function drawChart(svg: SVGSVGElement, paths: readonly string[]): void {
  svg.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
  while (svg.children.length > paths.length) svg.lastElementChild?.remove();
  while (svg.children.length < paths.length) svg.append(document.createElementNS("http://www.w3.org/2000/svg", "path"));
  paths.forEach((path, index) => {
    svg.children[index]?.setAttribute("d", path);
    svg.children[index]?.setAttribute("fill", COLOURS[index % COLOURS.length] ?? "");
  });
}
