/**
 * A Vega-Lite specification as SVG, and that as PNG with fonts that npm brings, so that it looks the same on any
 * machine. What is drawn is its caller's. As a command: `node lab/sim/draw.mjs FILE < SPECIFICATION`.
 */
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { json } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { Resvg } from "@resvg/resvg-js";
import * as vega from "vega";
import * as vegaLite from "vega-lite";

const FONT = "DejaVu Sans";
const fontDir = path.join(path.dirname(createRequire(import.meta.url).resolve("dejavu-fonts-ttf/package.json")), "ttf");
const fontFiles = readdirSync(fontDir)
  .filter((name) => /^DejaVuSans(-Bold)?\.ttf$/.test(name))
  .map((name) => path.join(fontDir, name));

/** What all pictures share. */
const CONFIG = {
  font: FONT,
  view: { stroke: "#ddd" },
  title: { fontSize: 12.5, anchor: "start" },
  axis: { labelFontSize: 10, titleFontSize: 10.5, titleFontWeight: "normal", gridColor: "#eee", titleColor: "#444" },
  legend: { labelFontSize: 11 },
};

/** The title of a picture, in the form of all. */
export const titleOf = (text, subtitle) => ({
  text,
  subtitle,
  anchor: "start",
  fontSize: 17,
  subtitleFontSize: 11.5,
  subtitleColor: "#555",
  offset: 16,
});

/** @returns {Promise<{ svg: string, png: Buffer }>} */
export async function draw(specification) {
  const whole = {
    $schema: "https://vega.github.io/schema/vega-lite/v6.json",
    background: "white",
    padding: 22,
    config: CONFIG,
    ...specification,
  };
  const { spec } = vegaLite.compile(whole, { logger: vega.logger(vega.Error) });
  const view = new vega.View(vega.parse(spec), { renderer: "none", logLevel: vega.Error });
  const svg = await view.toSVG();
  view.finalize();
  const png = new Resvg(svg, {
    font: { fontFiles, loadSystemFonts: false, defaultFontFamily: FONT },
    fitTo: { mode: "zoom", value: 2 },
  })
    .render()
    .asPng();
  return { svg, png };
}

/** Writes the picture to `file`, in the format of its extension: .svg or .png. */
export async function drawTo(file, { title, subtitle, ...specification }) {
  const { svg, png } = await draw({ ...specification, title: titleOf(title, subtitle) });
  mkdirSync(path.dirname(path.resolve(file)), { recursive: true });
  writeFileSync(file, file.endsWith(".png") ? png : svg);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await drawTo(process.argv[2], await json(process.stdin));
