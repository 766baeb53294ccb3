/** The GPU bench as a picture: coders over the symbols of a group, with the lines of networks and of the bus. */
export interface Row {
  what: string;
  coder: string;
  symbolCount: number;
  symbolBytes: number;
  gbPerSec: number;
}

const SYMBOL_BYTES = 4096;
const CODERS = [
  { what: "device encode", coder: "tensor", name: "GPU, data on the device", colour: "#7aa6d6" },
  { what: "host encode", coder: "GPU", name: "GPU, host to host", colour: "#2b4f86" },
  { what: "host encode", coder: "CPU, all cores", name: "CPU, all cores", colour: "#b3372f" },
] as const;
const NETWORKS = [
  { name: "network of 100 Gbit/s", gbPerSec: 12.5 },
  { name: "network of 10 Gbit/s", gbPerSec: 1.25 },
] as const;

export function pictureOf(rows: readonly Row[]): object {
  const copies = rows.find(({ what, coder }) => what === "copy" && coder === "to the device");
  const limits = [...NETWORKS, ...(copies ? [{ name: "copies one way", gbPerSec: copies.gbPerSec }] : [])];
  const points = CODERS.flatMap(({ what, coder, name }) =>
    rows
      .filter((row) => row.what === what && row.coder === coder && row.symbolBytes === SYMBOL_BYTES)
      .map(({ symbolCount, gbPerSec }) => ({ name, symbolCount, gbPerSec })),
  );
  const y = {
    field: "gbPerSec",
    type: "quantitative",
    title: "coded output, GB/s",
    scale: { type: "log", domain: [1, 200] },
  };
  const x = { type: "quantitative", title: "symbols of a group (of 4,096 bytes)", scale: { type: "log", base: 2 } };
  const names = CODERS.map(({ name }) => name);
  const colours = CODERS.map(({ colour }) => colour);
  return {
    width: 520,
    height: 320,
    background: "white",
    layer: [
      {
        data: { values: points },
        mark: { type: "line", point: true },
        encoding: {
          x: { ...x, field: "symbolCount", axis: { values: [32, 64, 128, 256, 512] } },
          y,
          color: {
            field: "name",
            type: "nominal",
            scale: { domain: names, range: colours },
            legend: { title: null, orient: "bottom", labelLimit: 260 },
          },
        },
      },
      { data: { values: limits }, mark: { type: "rule", strokeDash: [4, 4], color: "#8c8c8c" }, encoding: { y } },
      {
        data: { values: limits },
        mark: { type: "text", align: "right", dy: -6, x: 515, color: "#6b6b6b" },
        encoding: { y, text: { field: "name" } },
      },
    ],
  };
}
