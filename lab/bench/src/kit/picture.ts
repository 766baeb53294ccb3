/** Parts of Vega-Lite specifications that the benches' pictures share. `drawTo` of lab-sim draws them. */

/** The colour of each mode, client and rival in every picture. */
export const COLOURS: Readonly<Record<string, string>> = {
  direct: "#8c8c8c",
  "direct cubic": "#c4c4c4",
  "direct-http2": "#6b7a80",
  "direct-http2 cubic": "#aab6ba",
  "parallel-http": "#b3372f",
  "parallel-http cubic": "#dd8f89",
  "split-http": "#d9822b",
  "split-http cubic": "#f0b97a",
  "uncoded-mutp": "#a9c4e4",
  "uncoded-mutp WebTransport": "#7aa6d6",
  "coded-mutp": "#5b86c0",
  "coded-mutp WebTransport": "#2b4f86",
  coded: "#7fc29b",
  "coded WebTransport": "#1f7a4d",
  chunked: "#c9a227",
  "chunked cubic": "#e3cf84",
  aria2: "#8e5aa8",
  "aria2 cubic": "#c3a3d1",
};

/** Those of `COLOURS` that are in `names`, in the order of `COLOURS`. */
export const inOrder = (names: Iterable<string>): string[] => {
  const wanted = new Set(names);
  return Object.keys(COLOURS).filter((name) => wanted.has(name));
};

/** Colours by `field`, for these values of it. `legend` null: none. */
export const colourBy = (field: string, names: readonly string[], legend: object | null): object => ({
  field,
  type: "nominal",
  scale: { domain: names, range: names.map((name) => COLOURS[name]) },
  legend: legend && { title: null, orient: "bottom", ...legend },
});
