/** Tests what the memory keeps, for which network, and for how long. */
import { NetworkMemory, seriesOf } from "./memory";

function setup() {
  const at = { network: "home" };
  const memory = new NetworkMemory<string>(
    () => at.network,
    () => 1000,
  );
  return { memory, go: (network: string): void => void (at.network = network) };
}

test("memory: gives the latest value of a proxy, and nothing for another one", () => {
  const { memory } = setup();
  memory.note("a", "slow", 0);
  memory.note("a", "fast", 10);
  expect([memory.of("a", 500), memory.of("b", 500)]).toEqual(["fast", undefined]);
});

test("memory: forgets a value that is too old", () => {
  const { memory } = setup();
  memory.note("a", "fast", 10);
  expect([memory.of("a", 1010), memory.of("a", 1011)]).toEqual(["fast", undefined]);
});

test("memory: networks have separate values, and a client that returns finds its old ones", () => {
  const { memory, go } = setup();
  memory.note("a", "fast", 0);
  go("train");
  expect(memory.of("a", 1)).toBeUndefined();
  memory.note("a", "slow", 2);
  expect(memory.of("a", 3)).toBe("slow");
  go("home");
  expect(memory.of("a", 4)).toBe("fast");
});

test("memory: forgets the least recently noted of nine networks and the oldest of 65 entries", () => {
  const { memory, go } = setup();
  for (let index = 0; index < 8; index++) {
    go(`n${index}`);
    memory.note("a", "fast", 0);
  }
  go("n0");
  memory.note("b", "fast", 0);
  go("n8");
  for (let index = 0; index < 65; index++) memory.note(`p${index}`, "fast", 0);
  expect([memory.of("p0", 1), memory.of("p1", 1)]).toEqual([undefined, "fast"]);
  go("n1");
  expect(memory.of("a", 1)).toBeUndefined();
  go("n0");
  expect(memory.of("a", 1)).toBe("fast");
});

test.each([
  ["https://s/v/720p/seg-1.m4s?t=9", "https://s/v/720p/seg-*.m*s"],
  ["https://s/v/720p/seg-12.m4s#t", "https://s/v/720p/seg-*.m*s"],
  ["https://s/v/1080p/seg-1.m4s", "https://s/v/1080p/seg-*.m*s"],
  ["https://s/", "https://s/"],
])("memory: %s is of the series %s", (url, series) => {
  expect(seriesOf(url)).toBe(series);
});
