import { Choice } from "./choice";
import { NetworkMemory } from "./memory";
import type { Channel, ChannelOptions, Platform, Transport } from "./platform";
import { SessionPool, type Session } from "./session";
import { SETTINGS_DEFAULT } from "./settings";

const PROXY = { id: "a", name: "one", url: "http://proxy" };

interface Try {
  options: ChannelOptions;
  open(): void;
  fail(error: Error): void;
  closed: boolean;
}

function build(
  answer: () => Response = () => Response.json({ sdp: "answer" }, { status: 201 }),
  others: readonly Transport[] = [],
  more: Partial<Platform> = {},
) {
  const tries: Try[] = [];
  const failures: string[] = [];
  const recovered: Session[] = [];
  const asked: Session[] = [];
  const messages: Uint8Array[] = [];
  const posted: { url: string; body: string }[] = [];
  const webRtc: Transport = {
    name: "webrtc",
    reaches: () => true,
    open: (options: ChannelOptions) =>
      new Promise<Channel>((resolve, reject) => {
        const channel = { send: () => true, close: () => void (attempt.closed = true) };
        const attempt: Try = { options, closed: false, open: () => resolve(channel), fail: reject };
        options.signal.addEventListener("abort", () => reject(options.signal.reason as Error));
        tries.push(attempt);
      }),
  };
  const platform = {
    now: () => performance.now(),
    fetch: (url: string, init: RequestInit) => {
      posted.push({ url, body: init.body as string });
      return Promise.resolve(answer());
    },
    ...more,
  } as unknown as Platform;
  let shuts = 0;
  const pool = new SessionPool(
    platform,
    SETTINGS_DEFAULT,
    new Choice(
      [...others, webRtc],
      "auto",
      new NetworkMemory(
        () => "here",
        () => SETTINGS_DEFAULT.choiceMs,
      ),
    ),
    {
      onMessage: (_, bytes) => messages.push(bytes),
      onFailed: (_, reason) => failures.push(reason),
      ask: (session) => asked.push(session),
      onRecovered: (session) => recovered.push(session),
      onShut: () => shuts++,
    },
  );
  return { pool, session: pool.of(PROXY), tries, failures, recovered, asked, messages, posted, shuts: () => shuts };
}

const settle = (): Promise<void> => jest.advanceTimersByTimeAsync(0).then(() => undefined);
const ignore = (): void => undefined;

async function opened(session: Session, tries: Try[], onLost: (reason: string) => void = ignore): Promise<void> {
  const acquired = session.acquire(onLost);
  await settle();
  tries.at(-1)!.open();
  await acquired;
}

beforeEach(() => jest.useFakeTimers());
afterEach(() => {
  expect(jest.getTimerCount()).toBe(0);
  jest.useRealTimers();
});

describe("session", () => {
  test("session: simultaneous and later downloads share one connection", async () => {
    const { session, tries } = build();
    const both = Promise.all([session.acquire(ignore), session.acquire(ignore)]);
    await settle();
    tries[0]!.open();
    await both;
    session.release(ignore);
    session.release(ignore);
    await session.acquire(ignore);
    expect(tries).toHaveLength(1);
    expect(session.state).toBe("open");
    session.close("done");
  });

  test("session: sends the proxy an offer with our message limit, and uses its answer", async () => {
    const { session, tries, posted } = build();
    await opened(session, tries);
    const answer = await tries[0]!.options.sendOffer("v=0\r\na=max-message-size:262144\r\n");
    expect(answer).toBe("answer");
    expect(posted).toEqual([
      { url: "http://proxy/v1/sessions", body: JSON.stringify({ sdp: "v=0\r\na=max-message-size:16384\r\n" }) },
    ]);
    session.close("done");
  });

  test("session: closes after 55 s without use, and not during use", async () => {
    const { session, tries } = build();
    await opened(session, tries);
    await jest.advanceTimersByTimeAsync(200_000);
    expect(session.state).toBe("open");
    session.release(ignore);
    await jest.advanceTimersByTimeAsync(54_999);
    expect(session.state).toBe("open");
    await jest.advanceTimersByTimeAsync(1);
    expect(session.state).toBe("closed");
    expect(tries[0]!.closed).toBe(true);
  });

  test("session: tries three times for 5 s each, every time with a new connection", async () => {
    const { session, tries, failures } = build();
    const acquired = session.acquire(ignore).catch((error: Error) => error.message);
    await jest.advanceTimersByTimeAsync(4999);
    expect(tries).toHaveLength(1);
    await jest.advanceTimersByTimeAsync(5000 * 3 + 1000);
    expect(await acquired).toBe("No session to proxy one: webrtc: no channel within 5000 ms");
    expect(tries).toHaveLength(3);
    expect(failures).toEqual(["webrtc: no channel within 5000 ms"]);
    session.release(ignore);
  });

  test("session: the second try succeeds after an answer that fails", async () => {
    const { session, tries } = build();
    const acquired = session.acquire(ignore);
    await settle();
    tries[0]!.fail(new Error("the answer was not taken"));
    await jest.advanceTimersByTimeAsync(150);
    tries[1]!.open();
    await acquired;
    expect(session.state).toBe("open");
    session.close("done");
  });

  test("session: does not try again when the proxy refuses", async () => {
    const { session, tries, failures } = build(() =>
      Response.json({ error: { kind: "draining", message: "going down" } }, { status: 503 }),
    );
    const acquired = session.acquire(ignore).catch((error: Error) => error.message);
    await settle();
    await tries[0]!.options.sendOffer("offer").catch(tries[0]!.fail);
    expect(await acquired).toMatch(/the proxy answered 503 going down/);
    expect(failures).toHaveLength(1);
  });

  test("session: reports a loss once to each user, and the next user gets a new connection", async () => {
    const { session, tries, failures, recovered } = build();
    const lost: string[] = [];
    const onLost = (reason: string): void => void lost.push(reason);
    await opened(session, tries, onLost);
    tries[0]!.options.onClosed("gone");
    tries[0]!.options.onClosed("gone twice");
    session.release(onLost);
    expect(lost).toEqual(["gone"]);
    expect([failures, recovered]).toEqual([["gone"], []]);
    await opened(session, tries);
    expect(tries).toHaveLength(2);
    expect([session.state, recovered]).toEqual(["open", [session]]);
    session.close("done");
  });

  test("session: asks an unused proxy once a second if it is there, and closes without an answer", async () => {
    const { pool, session, tries, failures, asked } = build();
    pool.check();
    await opened(session, tries);
    pool.check();
    expect(asked).toEqual([]);
    session.release(ignore);
    pool.check();
    await jest.advanceTimersByTimeAsync(999);
    pool.check();
    expect(asked).toEqual([session]);
    await jest.advanceTimersByTimeAsync(1);
    pool.check();
    expect(asked).toHaveLength(2);
    pool.handleSilence(session.key);
    pool.handleSilence(session.key);
    expect([pool.stateOf("a"), tries[0]!.closed, failures]).toEqual(["closed", true, []]);
    await opened(session, tries);
    session.check("suspect");
    expect([session.state, asked.length]).toEqual(["open", 3]);
    session.close("done");
  });

  test("session: the head start of a transport in the worker counts from the worker's start", async () => {
    let start = ignore as () => void;
    const asked: ChannelOptions[] = [];
    const inWorker: Transport = {
      name: "webtransport",
      reaches: () => true,
      started: () => new Promise((resolve) => (start = resolve)),
      open: (options) =>
        new Promise((_, reject) => {
          asked.push(options);
          options.signal.addEventListener("abort", () => reject(options.signal.reason as Error));
        }),
    };
    const { session, tries } = build(undefined, [inWorker]);
    const acquired = session.acquire(ignore);
    await jest.advanceTimersByTimeAsync(3000);
    expect([asked.length, tries.length]).toEqual([0, 0]);
    start();
    await jest.advanceTimersByTimeAsync(SETTINGS_DEFAULT.headStartMs - 1);
    expect([asked.length, tries.length]).toEqual([1, 0]);
    await jest.advanceTimersByTimeAsync(1);
    tries[0]!.open();
    await acquired;
    expect([session.transport, asked[0]!.signal.aborted]).toEqual(["webrtc", true]);
    session.close("done");
  });

  test("session: within 10 s of a proxy of the browser each session that it refuses is closed", async () => {
    const refused = new Set<string>();
    const isShut = ({ id }: { id: string }): Promise<boolean> => Promise.resolve(refused.has(id));
    const { pool, session, tries, shuts } = build(undefined, [], { isShut });
    const others = ["b", "c"].map((id) => pool.of({ ...PROXY, id }));
    const lost: string[] = [];
    for (const each of [session, ...others]) await opened(each, tries, () => lost.push(each.proxy.id));
    await jest.advanceTimersByTimeAsync(10_000);
    expect([lost, shuts()]).toEqual([[], 0]);
    for (const id of ["b", "c"]) refused.add(id);
    await jest.advanceTimersByTimeAsync(10_000);
    expect([lost, shuts(), session.state]).toEqual([["b", "c"], 1, "open"]);
    session.close("done");
    await jest.advanceTimersByTimeAsync(10_000);
  });

  test("session: leaves nothing open if it is closed while it connects", async () => {
    const { session, tries, pool } = build();
    const acquired = session.acquire(ignore).catch((error: Error) => error.message);
    await settle();
    pool.close();
    expect(await acquired).toMatch(/The client was closed/);
    expect(tries).toHaveLength(1);
  });
});
