import { Pacer } from "./pacer";

test("pacer: over ten seconds it lets its rate and one burst through", () => {
  const pacer = new Pacer(100_000, 5_000, 0);
  let sent = 0;
  for (let now = 0; now <= 10_000; now++) {
    while (pacer.canSend(1_000, now)) {
      pacer.take(1_000, now);
      sent += 1_000;
    }
  }
  expect(sent).toBe(1_005_000);
});

test("pacer: nextMs is the first moment at which the message may go", () => {
  const pacer = new Pacer(1_000, 2_000, 0);
  pacer.take(2_000, 0);
  expect(pacer.nextMs(500, 0)).toBe(500);
  expect(pacer.canSend(500, 499)).toBe(false);
  expect(pacer.canSend(500, 500)).toBe(true);
});

test("pacer: a message larger than the burst goes when the bucket is full and delays the next one", () => {
  const pacer = new Pacer(1_000, 1_000, 0);
  expect(pacer.canSend(3_000, 0)).toBe(true);
  pacer.take(3_000, 0);
  expect(pacer.nextMs(1_000, 0)).toBe(3_000);
});

test("pacer: rate 0 means no limit", () => {
  const pacer = new Pacer(0, 1, 0);
  pacer.take(1e9, 0);
  expect(pacer.canSend(1e9, 0)).toBe(true);
  expect(pacer.nextMs(1e9, 5)).toBe(5);
});
