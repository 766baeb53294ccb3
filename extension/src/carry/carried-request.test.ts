import type { ByteRange } from "@tributary/contract";
import type { ToPage } from "../shared/messages";
import type { CarriedRequestEvents } from "../shared/carry";
import type { Link, LinkListener } from "../page/link";
import type { Check } from "./checks";
import { CarriedRequest, GRACE_MS } from "./carried-request";

const MEDIA = "https://media.example/a.mp4";
const PATIENCE_MS = 4000;
const HEAD: ToPage = {
  type: "head",
  id: 1,
  status: 200,
  statusText: "OK",
  headers: { etag: '"v1"' },
  responseType: "cors",
  url: "https://o.test/seg.m4s",
  redirected: false,
  totalBytes: 1000,
};
const WHOLE = Uint8Array.from({ length: 1000 }, (_, index) => index % 251);

interface Native {
  status?: number;
  headers?: Record<string, string>;
  bytes?: Uint8Array<ArrayBuffer>;
}

function make(
  native: Native | Error = {},
  range: ByteRange | null = null,
  verdict: boolean | Promise<boolean> = false,
) {
  let listener: LinkListener | undefined;
  const seen = {
    events: [] as string[],
    bytes: [] as number[],
    credit: 0,
    aborts: 0,
    direct: 0,
    wrong: [] as string[],
    noted: [] as number[][],
    ended: [] as boolean[],
    ranges: [] as (string | null)[],
  };
  const clock = { nowMs: 0 };
  const link = {
    env: { nowMs: () => clock.nowMs },
    noteWrong: (url: string) => seen.wrong.push(url),
    noteDirect: (bytes: number) => (seen.direct += bytes),
    call: (_request: unknown, given: LinkListener) => {
      listener = given;
      return { credit: (bytes: number) => (seen.credit += bytes), abort: () => seen.aborts++ };
    },
  } as unknown as Link;
  const nativeFetch = (async (_url: string, init: RequestInit) => {
    seen.ranges.push(new Headers(init.headers).get("range"));
    if (native instanceof Error) throw native;
    const headers = { etag: '"v1"', ...native.headers };
    return new Response(native.bytes ?? WHOLE.slice(400), { status: native.status ?? 206, headers });
  }) as typeof fetch;
  const events: CarriedRequestEvents = {
    native: () => seen.events.push("native"),
    head: () => seen.events.push("head"),
    bytes: (bytes) => seen.bytes.push(...bytes),
    end: () => seen.events.push("end"),
    error: () => seen.events.push("error"),
  };
  const check = {
    note: (at: number, { length }: Uint8Array) => seen.noted.push([at, length]),
    end: (isWhole: boolean) => seen.ended.push(isWhole),
  } as unknown as Check;
  const page = {
    fetch: nativeFetch,
    checks: { begin: () => check, verdict: () => verdict },
    patienceMs: () => PATIENCE_MS,
    player: () => undefined,
  };
  const carried = new CarriedRequest(link, page, { url: MEDIA, range }, events);
  const receive = (...messages: ToPage[]): void => messages.forEach((message) => listener?.message(message));
  const data = (start: number, end: number): ToPage => ({
    type: "data",
    id: 1,
    buffer: WHOLE.slice(start, end).buffer,
  });
  return { carried, seen, clock, receive, data, lose: () => listener?.lost(), tick: () => listener?.tick(clock.nowMs) };
}

const settle = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 10));

describe("carried request: answered by the transport", () => {
  test("passes on head, bytes and end, and gives credit for the bytes that were taken", () => {
    const { carried, seen, receive, data } = make();
    receive(HEAD, data(0, 600));
    carried.credit();
    receive(data(600, 1000), { type: "end", id: 1 });
    carried.credit();
    expect([seen.events, seen.bytes, seen.credit]).toEqual([["head", "end"], [...WHOLE], 600]);
  });

  test("the caller asks itself after a refusal before the head", () => {
    const { seen, receive } = make();
    receive({ type: "native", id: 1 });
    expect([seen.events, seen.ranges]).toEqual([["native"], []]);
  });

  test("no event follows an abort", () => {
    const { carried, seen, receive, data, lose } = make();
    receive(HEAD);
    carried.abort();
    receive(data(0, 10));
    lose();
    expect([seen.events, seen.bytes, seen.aborts]).toEqual([["head"], [], 1]);
  });

  test("the caller asks itself if no first byte arrives in time", () => {
    const { seen, clock, tick } = make();
    clock.nowMs = PATIENCE_MS + GRACE_MS;
    tick();
    expect(seen.events).toEqual([]);
    clock.nowMs += 1;
    tick();
    expect([seen.events, seen.aborts]).toEqual([["native"], 1]);
  });

  test("a page that does not read is not a stall", async () => {
    const { seen, clock, receive, data, tick } = make();
    receive(HEAD, data(0, 400));
    clock.nowMs = 10 * PATIENCE_MS;
    tick();
    await settle();
    expect([seen.events, seen.ranges]).toEqual([["head"], []]);
  });
});

describe("carried request: finished natively", () => {
  const failures: [string, (made: ReturnType<typeof make>) => void][] = [
    ["the transport fails", ({ receive }) => receive({ type: "failed", id: 1 })],
    ["the transport is lost", ({ lose }) => lose()],
    ["the body ends early", ({ receive }) => receive({ type: "end", id: 1 })],
    [
      "the body stalls",
      ({ carried, clock, tick }) => {
        carried.credit();
        clock.nowMs = PATIENCE_MS + GRACE_MS + 1;
        tick();
      },
    ],
  ];

  test.each(failures)("continues from the delivered offset when %s", async (_name, fail) => {
    const made = make();
    made.receive(HEAD, made.data(0, 400));
    fail(made);
    await settle();
    expect([made.seen.events, made.seen.bytes, made.seen.ranges, made.seen.direct]).toEqual([
      ["head", "end"],
      [...WHOLE],
      ["bytes=400-"],
      600,
    ]);
  });

  test("stays within the asked range", async () => {
    const { seen, receive, data } = make({}, { start: 5000, end: 5999 });
    receive({ ...HEAD, status: 206 }, data(0, 400), { type: "failed", id: 1 });
    await settle();
    expect([seen.events, seen.ranges]).toEqual([["head", "end"], ["bytes=5400-5999"]]);
  });

  test("accepts a part whose Content-Range matches", async () => {
    const { seen, receive, data } = make(
      { headers: { "content-range": "bytes 5400-5999/9000" } },
      { start: 5000, end: 5999 },
    );
    receive({ ...HEAD, status: 206, headers: { "content-range": "bytes 5000-5999/9000" } }, data(0, 400), {
      type: "failed",
      id: 1,
    });
    await settle();
    expect(seen.events).toEqual(["head", "end"]);
  });

  test("skips the delivered bytes if the origin ignores the range", async () => {
    const { seen, receive, data } = make({ status: 200, bytes: WHOLE, headers: { "content-length": "1000" } });
    receive(HEAD, data(0, 400), { type: "failed", id: 1 });
    await settle();
    expect([seen.events, seen.bytes]).toEqual([["head", "end"], [...WHOLE]]);
  });

  test.each<[string, Native | Error]>([
    ["the file has changed", { headers: { etag: '"v2"' } }],
    ["the whole file's length has changed", { headers: { "content-range": "bytes 400-999/1001" } }],
    ["another part is sent", { headers: { "content-range": "bytes 0-599/1000" } }],
    ["the length has changed", { headers: { "content-length": "599" } }],
    ["the rest is short", { bytes: WHOLE.slice(400, 900) }],
    ["the origin says 404", { status: 404 }],
    ["the network is down", new TypeError("Failed to fetch")],
  ])("ends in an error when %s", async (_name, native) => {
    const { seen, receive, data } = make(native);
    receive(HEAD, data(0, 400), { type: "failed", id: 1 });
    await settle();
    expect(seen.events).toEqual(["head", "error"]);
  });

  test("fetches nothing after all bytes were delivered", async () => {
    const { seen, receive, data, lose } = make();
    receive(HEAD, data(0, 1000));
    lose();
    await settle();
    expect([seen.events, seen.ranges]).toEqual([["head", "end"], []]);
  });
});

describe("carried request: checks", () => {
  const whole = ({ receive, data }: ReturnType<typeof make>): void =>
    receive(HEAD, data(0, 400), data(400, 1000), { type: "end", id: 1 });

  test("the check sees all bytes and the end", () => {
    const made = make();
    whole(made);
    expect([made.seen.noted, made.seen.ended[0]]).toEqual([
      [
        [0, 400],
        [400, 600],
      ],
      true,
    ]);
  });

  test.each([
    [false, "end", []],
    [true, "error", [MEDIA]],
  ] as const)("the end waits for a running check; wrong bytes: %s", async (isWrong, event, told) => {
    const made = make({}, null, Promise.resolve(isWrong));
    whole(made);
    expect(made.seen.events).toEqual(["head"]);
    await settle();
    expect([made.seen.events, made.seen.wrong]).toEqual([["head", event], told]);
  });

  test("bytes from a host that is known for wrong bytes end in an error at once", () => {
    const made = make({}, null, true);
    whole(made);
    expect([made.seen.events, made.seen.wrong]).toEqual([["head", "error"], [MEDIA]]);
  });

  test("no event follows an abort during a check, and an abort in the middle ends the check", async () => {
    const made = make({}, null, Promise.resolve(true));
    whole(made);
    made.carried.abort();
    await settle();
    expect([made.seen.events, made.seen.wrong]).toEqual([["head"], []]);
    const other = make();
    other.receive(HEAD, other.data(0, 400));
    other.carried.abort();
    expect(other.seen.ended).toEqual([false]);
  });
});
