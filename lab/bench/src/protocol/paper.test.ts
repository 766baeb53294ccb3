/** The shape of the paper's figures (Braun, Médard, Ekler 2019, Figs 11, 13, 14) on its links, in simulation. */
import { loadCodec } from "@tributary/native-codec";
import { loadWasmCodec } from "@tributary/wasm-codec/node";
import { measure } from "./measure";
import { ROWS, type Variant } from "./rows";
import type { Mode } from "@tributary/lab-sim";

const codec = loadCodec(loadWasmCodec);
const SEEDS = 3;
const rowOf = (title: string): Variant[] => ROWS.find((row) => row.title.startsWith(title))!.variants;
const goodput = (variant: Variant, mode: Mode): number => measure(variant, mode, SEEDS, 1, codec).normalizedGoodput;

describe.each(["parallel-http", "parallel-http-cubic"] as const)("the paper's modes beside %s", (http) => {
  test.each(
    rowOf("the paper's modes, one to six sources")
      .slice(1)
      .map((variant) => [variant.links, variant] as const),
  )("simulation: over %s normalized goodput is coded > uncoded > parallel HTTP (seeds 1 to 3)", (_, variant) => {
    const [coded, uncoded, parallel] = [
      goodput(variant, "coded-mutp"),
      goodput(variant, "uncoded-mutp"),
      goodput(variant, http),
    ];
    expect(coded).toBeGreaterThan(1.1 * uncoded);
    expect(uncoded).toBeGreaterThan(1.1 * parallel);
  });

  test("simulation: from one source all modes waste little (seeds 1 to 3)", () => {
    const [single] = rowOf("the paper's modes, one to six sources");
    for (const mode of ["coded-mutp", "uncoded-mutp", http] as const)
      expect(goodput(single!, mode)).toBeGreaterThan(0.99);
  });
});

describe("generation size and window", () => {
  const variants = rowOf("the paper's modes, generation size g and window w");
  const of = (size: number, window: number): Variant =>
    variants.find(({ tuning }) => tuning?.generationSize === size && tuning.windowPackets === window)!;

  test("simulation: generations of 12, 20 and 24 symbols waste about the same (seeds 1 to 3)", () => {
    const found = [12, 20, 24].map((size) => goodput(of(size, 240), "coded-mutp"));
    expect(Math.max(...found) / Math.min(...found)).toBeLessThan(1.1);
  });

  test.each(["uncoded-mutp", "coded-mutp"] as const)(
    "simulation: a larger window wastes less, mode %s (seeds 1 to 3)",
    (mode) => {
      const [small, middle, large] = [120, 240, 360].map((window) => goodput(of(24, window), mode));
      expect(middle!).toBeGreaterThan(1.05 * small!);
      expect(large!).toBeGreaterThan(1.05 * middle!);
    },
  );
});
