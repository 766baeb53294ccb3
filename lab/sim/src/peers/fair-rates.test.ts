import { Random } from "../random";
import { fairRates, type Flows } from "./fair-rates";

function draw(seed: number): { flows: Flows; isBusy: Uint8Array } {
  const random = new Random(seed);
  const nodes = 2 + Math.floor(random.unit() * 12);
  const pairs = Array.from({ length: 1 + Math.floor(random.unit() * 40) }, () =>
    [0, nodes].map((first) => first + Math.floor(random.unit() * nodes)),
  );
  const flowsOf = Array.from({ length: 2 * nodes }, (_, resource) =>
    Int32Array.from([...pairs.keys()].filter((flow) => pairs[flow]!.includes(resource))),
  );
  const [up, down] = [0, 1].map((end) => Int32Array.from(pairs, (pair) => pair[end]!));
  const capacity = Float64Array.from({ length: 2 * nodes }, () => 1 + random.unit() * 100);
  const isBusy = Uint8Array.from(pairs, () => (random.unit() < 0.8 ? 1 : 0));
  return { flows: { up: up!, down: down!, flowsOf, capacity }, isBusy };
}

test("rates are max-min fair: each flow has a full resource at which no flow is faster", () => {
  for (let seed = 1; seed <= 200; seed++) {
    const { flows, isBusy } = draw(seed);
    const rates = new Float64Array(isBusy.length);
    fairRates(flows, isBusy, rates);
    const used = Array.from(flows.flowsOf, (own) => own.reduce((sum, flow) => sum + rates[flow]!, 0));
    const excess = used.map((sum, resource) => sum - flows.capacity[resource]!);
    expect(Math.max(...excess)).toBeLessThan(1e-6);
    for (const flow of rates.keys()) {
      const isBound = [flows.up[flow]!, flows.down[flow]!].some(
        (resource) =>
          excess[resource]! > -1e-6 && flows.flowsOf[resource]!.every((other) => rates[other]! <= rates[flow]! + 1e-6),
      );
      expect([seed, flow, isBusy[flow] === 1 ? isBound : rates[flow] === 0]).toEqual([seed, flow, true]);
    }
  }
});
