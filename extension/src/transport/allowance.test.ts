import { Allowance, GROW_MS, hasKey, REQUESTS_AT_FIRST, ROOM_MIN, tellsLimit, WINDOW_MS } from "./allowance";

const PLACE = "https://page.example media.example";
const KEYED = new URL("https://media.example/1.ts?token=abc");
const PLAIN = new URL("https://media.example/1.ts");

describe("allowance: requests with a viewer's key", () => {
  test(`up to ${REQUESTS_AT_FIRST} in a while, those of the page included`, () => {
    const allowance = new Allowance();
    allowance.note(PLACE, 1, 0);
    expect(allowance.allows(PLACE, KEYED, REQUESTS_AT_FIRST - 1, 0)).toBe(true);
    expect(allowance.allows(PLACE, KEYED, REQUESTS_AT_FIRST, 0)).toBe(false);
    expect(allowance.allows(PLACE, PLAIN, 32, 0)).toBe(true);
    expect(allowance.allows("another", KEYED, REQUESTS_AT_FIRST, 0)).toBe(true);
    expect(allowance.allows(PLACE, KEYED, REQUESTS_AT_FIRST, WINDOW_MS)).toBe(true);
  });

  test("what the page asked by itself shows what the host takes", () => {
    const allowance = new Allowance();
    for (let at = 0; at < 20; at++) allowance.note(PLACE, 1, at);
    expect(allowance.allows(PLACE, KEYED, 20, WINDOW_MS + 20)).toBe(true);
    expect(allowance.allows(PLACE, KEYED, 21, WINDOW_MS + 20)).toBe(false);
  });

  test("half as many again after a time at the bound", () => {
    const allowance = new Allowance();
    const more = REQUESTS_AT_FIRST + 1;
    expect(allowance.allows(PLACE, KEYED, more, 0)).toBe(false);
    expect(allowance.allows(PLACE, KEYED, more, GROW_MS - 1)).toBe(false);
    expect(allowance.allows(PLACE, KEYED, more, GROW_MS)).toBe(false);
    expect(allowance.allows(PLACE, KEYED, more, GROW_MS)).toBe(true);
    expect(allowance.allows(PLACE, KEYED, 1.5 * REQUESTS_AT_FIRST + 1, GROW_MS)).toBe(false);
  });
});

test.each([
  ["/a.ts?token=1", true],
  ["/a.ts?page=http://192.0.2.1/film-of-2026", false],
  ["/a.ts?type=video/mp4;%20codecs=avc1", false],
  ["/a.ts?Expires=1&Signature=x", true],
  ["/a.ts?X-Amz-Signature=x", true],
  ["/hdnts=exp=1~hmac=2/a.ts", true],
  ["/v;jsessionid=1/a.ts", true],
  ["/a.ts?x=0123456789abcdef", true],
  ["/a.ts", false],
  ["/a.ts?part=3", false],
  ["/a.ts?x=12345678901234567", false],
  ["/0123456789abcdef/a.ts", false],
])("allowance: %s holds a viewer's key: %s", (path, expected) =>
  expect(hasKey(new URL(path, "https://media.example"))).toBe(expected),
);

test.each<[Record<string, string>, boolean]>([
  [{ ratelimit: '"default";r=50;t=30' }, true],
  [{ ratelimit: "limit=100, remaining=50, reset=5" }, true],
  [{ "ratelimit-remaining": "0" }, true],
  [{ "x-ratelimit-remaining": String(ROOM_MIN - 1) }, true],
  [{ "x-rate-limit-remaining": String(ROOM_MIN) }, false],
  [{ "ratelimit-remaining": "much" }, false],
  [{}, false],
])("allowance: %j tells of a near limit: %s", (headers, expected) => expect(tellsLimit(headers)).toBe(expected));
