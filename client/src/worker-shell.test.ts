/** The channels of the engine's worker; the engine itself is engine.test.ts's. */
import type { FromEngine } from "./messages";
import type { Channel, ChannelOptions, Transport } from "./platform";
import { serveEngine } from "./worker-shell";

const PROXY = { id: "p", name: "p", url: "http://p", udp: { host: "h", port: 1 } };

function setup() {
  const opened: { options: ChannelOptions; resolve(channel: Channel): void; reject(error: Error): void; closed: boolean }[] = [];
  const udp: Transport = {
    name: "udp",
    reaches: (proxy) => proxy.udp !== undefined,
    open: (options) => new Promise((resolve, reject) => {
      const entry = { options, reject, closed: false, resolve: () => resolve({ send: () => true, signals: () => Promise.resolve(undefined), close: () => void (entry.closed = true) }) };
      opened.push(entry);
    }),
  };
  const posted: FromEngine[] = [];
  const handle = serveEngine({ post: (message) => posted.push(message) }, { transports: [udp], defer: (task) => void setImmediate(task) });
  return { handle, posted, opened };
}

const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test("worker: a channel is opened before there is a codec, and its end is told once", async () => {
  const { handle, posted, opened } = setup();
  handle({ type: "open", channel: 1, session: 5, transport: "udp", proxy: PROXY });
  opened[0]!.resolve(undefined as never);
  await settle();
  opened[0]!.options.onClosed("gone");
  opened[0]!.options.onClosed("gone again");
  expect(posted).toEqual([{ type: "opened", channel: 1 }, { type: "channelClosed", channel: 1, reason: "gone" }]);
});

test("worker: a transport that is not here, does not reach the proxy or fails is a channel that closes", async () => {
  const { handle, posted, opened } = setup();
  handle({ type: "open", channel: 1, session: 5, transport: "webtransport", proxy: PROXY });
  handle({ type: "open", channel: 2, session: 5, transport: "udp", proxy: { id: "q", name: "q", url: "http://q" } });
  handle({ type: "open", channel: 3, session: 5, transport: "udp", proxy: PROXY });
  opened[0]!.reject(new Error("refused"));
  await settle();
  expect(posted).toEqual([
    { type: "channelClosed", channel: 1, reason: "no webtransport here" },
    { type: "channelClosed", channel: 2, reason: "no udp here" },
    { type: "channelClosed", channel: 3, reason: "refused" },
  ]);
});

test("worker: a channel that is given up while it opens is closed should it still open, and nothing is told", async () => {
  const { handle, posted, opened } = setup();
  handle({ type: "open", channel: 1, session: 5, transport: "udp", proxy: PROXY });
  handle({ type: "closeChannel", channel: 1 });
  expect(opened[0]!.options.signal.aborted).toBe(true);
  opened[0]!.resolve(undefined as never);
  await settle();
  expect([posted, opened[0]!.closed]).toEqual([[], true]);
});
