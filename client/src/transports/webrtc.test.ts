import { fingerprintOf, LIMITS, Reassembler } from "@tributary/protocol";
import type { Channel, ChannelOptions } from "../platform";
import { webRtcOver, type Association, type AssociationOptions } from "./webrtc";

const WORD = "0123456789abcdef0123456789abcdef";

class FakeAssociation implements Association {
  readonly sent: (Uint8Array | string)[] = [];
  closed = false;
  constructor(readonly options: AssociationOptions) {}
  send(message: Uint8Array | string): boolean {
    this.sent.push(message);
    return true;
  }
  signals(): Promise<undefined> {
    return Promise.resolve(undefined);
  }
  close(): void {
    this.closed = true;
  }
}

async function setup() {
  const made: FakeAssociation[] = [];
  const exchanged: [string, string | undefined][] = [];
  const log: string[] = [];
  let refuses = false;
  const transport = webRtcOver(async (options) => {
    const association = new FakeAssociation(options);
    await options.exchange("offer");
    if (refuses) throw new Error("refused");
    made.push(association);
    return association;
  });
  const channel: Channel = await transport.open({
    signal: new AbortController().signal,
    exchange: (offer: string, join?: string) => {
      exchanged.push([offer, join]);
      return Promise.resolve("answer");
    },
    onMessage: (bytes: Uint8Array) => log.push(`message ${bytes.length}`),
    onClosed: (reason: string) => log.push(`closed: ${reason}`),
  } as unknown as ChannelOptions);
  const invite = async (word = WORD): Promise<void> => {
    made[0]!.options.onMessage(`join ${word}`);
    await jest.advanceTimersByTimeAsync(0);
  };
  return { channel, made, exchanged, log, invite, refuse: () => (refuses = true) };
}

beforeEach(() => jest.useFakeTimers());
afterEach(() => jest.useRealTimers());

test("reports how many messages have come over each, and the newest", async () => {
  const { made, invite, log } = await setup();
  await invite();
  const messages = [1, 2, 3].map((byte) => Uint8Array.of(byte));
  for (const message of messages) made[1]!.options.onMessage(message);
  await jest.advanceTimersByTimeAsync(25);
  expect(made[1]!.sent).toEqual([`3 ${fingerprintOf(messages[2]!)}`]);
  expect(made[0]!.sent).toEqual([]);
  expect(log).toEqual(["message 1", "message 1", "message 1"]);
});

test("another association joins by the proxy's word, and is of the same channel", async () => {
  const { channel, made, exchanged, invite } = await setup();
  await invite();
  expect(exchanged).toEqual([["offer", undefined], ["offer", WORD]]);
  channel.send(Uint8Array.of(1));
  expect(made.map(({ sent }) => sent.length)).toEqual([1, 0]);
  channel.close();
  expect(made.map(({ closed }) => closed)).toEqual([true, true]);
});

test("a message longer than a packet of 1,200 bytes goes in pieces that are not, and comes together again", async () => {
  const { channel, made } = await setup();
  const message = Uint8Array.from({ length: 3000 }, (_, index) => index & 0x7f);
  expect(channel.send(message)).toBe(true);
  const pieces = made[0]!.sent as Uint8Array[];
  expect(pieces).toHaveLength(3);
  expect(Math.max(...pieces.map(({ length }) => length))).toBe(LIMITS.channelMessageBytesMax);
  const reassembler = new Reassembler();
  expect(pieces.map((piece) => reassembler.accept(piece)).filter(Boolean)).toEqual([message]);
});

test("a word that is none, and one too many, are not followed", async () => {
  const { made, invite } = await setup();
  for (const word of ["", "x", WORD.toUpperCase(), `${WORD}0`, "z".repeat(32)]) await invite(word);
  expect(made).toHaveLength(1);
  for (let index = 0; index < 6; index++) await invite();
  expect(made).toHaveLength(4);
});

test("an association that cannot be had changes nothing", async () => {
  const { channel, made, log, invite, refuse } = await setup();
  refuse();
  await invite();
  expect(made).toHaveLength(1);
  expect(channel.send(Uint8Array.of(1))).toBe(true);
  expect(log).toEqual([]);
});

test("the channel is lost with its last association, and told once", async () => {
  const { channel, made, log, invite } = await setup();
  await invite();
  made[0]!.options.onClosed("gone");
  expect(log).toEqual([]);
  channel.send(Uint8Array.of(1));
  expect(made[1]!.sent).toHaveLength(1);
  made[1]!.options.onClosed("gone too");
  expect(log).toEqual(["closed: gone too"]);
  expect(channel.send(Uint8Array.of(1))).toBe(false);
});

test("an association that opens after the close is closed", async () => {
  const { channel, made } = await setup();
  made[0]!.options.onMessage(`join ${WORD}`);
  channel.close();
  await jest.advanceTimersByTimeAsync(0);
  expect(made.every(({ closed }) => closed)).toBe(true);
});
