import { z } from "zod";
import { randomUuid } from "./uuid";

test("a random UUID has its form without crypto.randomUUID, and each is another", () => {
  jest.spyOn(crypto, "randomUUID").mockImplementation(() => {
    throw new TypeError("crypto.randomUUID is not a function");
  });
  const made = Array.from({ length: 200 }, () => randomUuid());
  for (const id of made) {
    expect(z.string().uuid().safeParse(id).success).toBe(true);
    expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  }
  expect(new Set(made).size).toBe(200);
});
