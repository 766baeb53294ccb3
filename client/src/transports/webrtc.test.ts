import { Fragmenter, LIMITS, Reassembler } from "@tributary/protocol";
import type { ChannelOptions } from "../platform";
import { webRtcOver, type DataChannelOptions } from "./webrtc";

async function setup() {
  const [sent, got]: Uint8Array[][] = [[], []];
  let given: DataChannelOptions | undefined;
  const transport = webRtcOver((options) => {
    given = options;
    return Promise.resolve({ send: (bytes) => sent!.push(bytes.slice()) > 0, close: () => undefined });
  });
  const channel = await transport.open({
    onMessage: (bytes: Uint8Array) => got!.push(bytes.slice()),
  } as unknown as ChannelOptions);
  return { channel, sent: sent!, got: got!, arrive: (packet: Uint8Array) => given!.onMessage(packet) };
}

const message = Uint8Array.from({ length: 3000 }, (_, index) => index & 0x7f);

test("webrtc: sends a message that is longer than a packet in pieces that fit packets of 1,200 bytes", async () => {
  const { channel, sent } = await setup();
  expect(channel.send(message)).toBe(true);
  expect(Math.max(...sent.map(({ length }) => length))).toBeLessThanOrEqual(LIMITS.channelMessageBytesMax);
  const reassembler = new Reassembler();
  expect(sent.map((piece) => reassembler.accept(piece)).filter(Boolean)).toEqual([message]);
});

test("webrtc: joins pieces that come in any order to one message", async () => {
  const { got, arrive } = await setup();
  const pieces = [...new Fragmenter().split(message, 1000)].map((piece) => piece.slice());
  pieces.reverse().forEach(arrive);
  expect(got).toEqual([message]);
  arrive(Uint8Array.of(1, 2));
  expect(got[1]).toEqual(Uint8Array.of(1, 2));
});
