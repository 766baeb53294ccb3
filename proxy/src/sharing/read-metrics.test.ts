import { withReads } from "./read-metrics";

test("read metrics: bytes from origins and peers stand beside the other metrics", async () => {
  const others = { contentType: "text/plain", text: () => Promise.resolve("other 1\n") };
  let originBytes = 5;
  const metrics = withReads(others, () => ({ originBytes, sharing: { fromPeersBytes: 3, toPeersBytes: 0 } }));
  await metrics.text();
  originBytes = 7;
  const lines = (await metrics.text()).split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  expect(lines).toEqual([
    "other 1",
    'tributary_body_bytes_total{way="origin"} 7',
    'tributary_body_bytes_total{way="from_peers"} 3',
    'tributary_body_bytes_total{way="to_peers"} 0',
  ]);
});
