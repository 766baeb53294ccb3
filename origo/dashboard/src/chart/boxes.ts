/** Boxes: a box plot with one box per group. Each box shows its n. Pure. */
import type { Box } from "@tributary/contract/query-schema";
import { count, quantity } from "../format";
import {
  axisLook,
  baseOption,
  beside,
  groupText,
  legend,
  titleOf,
  unitOf,
  valueAxis,
  type ChartFields,
  type Option,
} from "./base";
import { colourAt, type Look } from "./look";

/** When a box is narrower than this, in CSS pixels, its n is written upwards. */
const HORIZONTAL_TEXT_WIDTH_MIN = 30;

/** The first field of the grouping is the axis; the second one is the colour. */
export function boxGrid(boxes: readonly Box[]): {
  categories: string[];
  series: string[];
  at: (category: string, series: string) => Box | undefined;
} {
  const categoryOf = (box: Box): string => groupText(box.group.slice(0, 1));
  const seriesOf = (box: Box): string => groupText(box.group.slice(1));
  const byName = new Map(boxes.map((box) => [JSON.stringify([categoryOf(box), seriesOf(box)]), box]));
  return {
    categories: [...new Set(boxes.map(categoryOf))],
    series: [...new Set(boxes.map(seriesOf))],
    at: (category, name) => byName.get(JSON.stringify([category, name])),
  };
}

interface CustomApi {
  coord: (point: [number, number]) => [number, number];
  barLayout: (options: object) => { offsetCenter: number; width: number }[];
}

/** A box and the index of its category. */
interface PlacedBox {
  box: Box;
  category: number;
}

export function boxOption(boxes: readonly Box[], fields: ChartFields, look: Look): Option {
  const { categories, series, at } = boxGrid(boxes);
  const unit = unitOf(fields.y);
  const isShown = (value: number): boolean => !fields.log || value > 0;
  return {
    ...baseOption(look),
    legend: legend(series, look),
    xAxis: {
      ...axisLook(look),
      type: "category",
      data: categories,
      splitLine: { show: false },
      name: titleOf(fields.groups[0]),
      nameLocation: "middle",
      nameGap: 30,
    },
    // Room above the highest value, for its n.
    yAxis: { ...beside(valueAxis(fields.y, look, fields.log), look), boundaryGap: [0, "10%"] },
    series: series.map((name, seriesIndex) => {
      const placed = categories.flatMap((each, category): PlacedBox[] => {
        const box = at(each, name);
        return box === undefined ? [] : [{ box, category }];
      });
      const colour = colourAt(look, seriesIndex);
      return {
        type: "custom",
        name,
        clip: true,
        itemStyle: { color: colour },
        encode: { x: 0, y: [1, 2, 3] },
        data: placed.map(({ box, category }) => ({ value: [category, ...extentOf(box, isShown)], box })),
        tooltip: { formatter: ({ data }: { data: { box: Box } }) => boxText(data.box, unit) },
        renderItem: (params: { dataIndex: number }, api: CustomApi) => {
          const each = placed[params.dataIndex];
          const slots = api.barLayout({ count: series.length, barMaxWidth: 56, barGap: "25%" });
          const slot = slots[seriesIndex] ?? { offsetCenter: 0, width: 20 };
          return each ? boxShape(each, slot, api, { colour, text: look.muted }, isShown) : null;
        },
      };
    }),
  };
}

/** The lowest value, the median and the highest value that are drawn. */
function extentOf(box: Box, isShown: (value: number) => boolean): [number, number, number] {
  return [
    Math.min(box.whiskerLow, ...box.outliers.filter(isShown)),
    box.median,
    Math.max(box.whiskerHigh, ...box.outliers),
  ];
}

function boxText(box: Box, unit: string | null): string {
  const show = (value: number): string => quantity(value, unit);
  return [
    `${groupText(box.group)}   n = ${count(box.n)}`,
    `median: ${show(box.median)}`,
    `quartiles: ${show(box.q1)} and ${show(box.q3)}`,
    `whiskers: ${show(box.whiskerLow)} and ${show(box.whiskerHigh)}`,
    `outliers: ${count(box.outlierCount)}`,
  ].join("\n");
}

/**
 * Draws one box: quartiles, median, whiskers to the last value within 1.5 interquartile ranges, outliers, and n above.
 */
function boxShape(
  { box, category }: PlacedBox,
  slot: { offsetCenter: number; width: number },
  api: CustomApi,
  { colour, text }: { colour: string; text: string },
  isShown: (value: number) => boolean,
): object {
  const y = (value: number): number => api.coord([category, value])[1];
  const x = api.coord([category, box.median])[0] + slot.offsetCenter;
  const half = Math.max(2, slot.width / 2);
  const line = (x1: number, y1: number, x2: number, y2: number, lineWidth = 1.5) => ({
    type: "line",
    shape: { x1, y1, x2, y2 },
    style: { stroke: colour, lineWidth },
  });
  const outliers = box.outliers.filter(isShown);
  const isNarrow = slot.width < HORIZONTAL_TEXT_WIDTH_MIN;
  const bar = { x: x - half, y: y(box.q3), width: 2 * half, height: Math.max(1, y(box.q1) - y(box.q3)) };
  return {
    type: "group",
    children: [
      line(x, y(box.q3), x, y(box.whiskerHigh)),
      line(x, y(box.q1), x, y(box.whiskerLow)),
      line(x - half / 2, y(box.whiskerHigh), x + half / 2, y(box.whiskerHigh)),
      line(x - half / 2, y(box.whiskerLow), x + half / 2, y(box.whiskerLow)),
      { type: "rect", shape: bar, style: { fill: `${colour}40`, stroke: colour, lineWidth: 1.5 } },
      line(x - half, y(box.median), x + half, y(box.median), 3),
      ...outliers.map((value) => ({
        type: "circle",
        shape: { cx: x, cy: y(value), r: 2 },
        style: { fill: `${colour}80` },
      })),
      {
        type: "text",
        x,
        y: y(Math.max(box.whiskerHigh, ...outliers)) - 4,
        rotation: isNarrow ? Math.PI / 2 : 0,
        style: {
          text: `n=${count(box.n)}`,
          align: isNarrow ? "left" : "center",
          verticalAlign: isNarrow ? "middle" : "bottom",
          fill: text,
          fontSize: isNarrow ? 9 : 11,
        },
      },
    ],
  };
}
