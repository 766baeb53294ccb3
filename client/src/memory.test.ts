/** What is remembered of proxies, and for how long. */
import { PathMemory } from "./memory";

const path = { rttMs: 50, bytesPerSec: 896_000, loss: 0.02 };

test("memory: a proxy is remembered as it was last seen, and no other", () => {
  const memory = new PathMemory(() => 1000);
  memory.note("a", { ...path, rttMs: 20 }, 0);
  memory.note("a", path, 10);
  expect([memory.of("a", 500), memory.of("b", 500)]).toEqual([path, undefined]);
});

test("memory: what is too old is forgotten", () => {
  const memory = new PathMemory(() => 1000);
  memory.note("a", path, 10);
  expect([memory.of("a", 1010), memory.of("a", 1011), memory.of("a", 1010)]).toEqual([path, undefined, undefined]);
});
