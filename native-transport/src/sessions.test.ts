/** In which order the datagrams of several sessions reach their channels. */
import { Fragmenter } from "@tributary/protocol";
import type { NativeSessions, SessionEvent } from "./addon";
import { Sessions } from "./sessions";

const counts = new Map([
  [1, 1000],
  [2, 100],
  [3, 1],
]);

function receivedBy(session: number, count: number): SessionEvent {
  const fragmenter = new Fragmenter();
  const datagrams = Array.from({ length: count }, (_, index) => [
    ...fragmenter.split(Uint8Array.of(session, index >> 8, index & 255), 1200),
  ]).flat();
  const lengths = Uint32Array.from(datagrams, ({ length }) => length);
  return { session, kind: "received", bytes: Buffer.concat(datagrams), lengths };
}

test("sessions: what waits of several sessions is handed on side by side, in order, and before they close", () => {
  const seen: [session: number, index: number][] = [];
  const closed: [session: number, seen: number][] = [];
  let events: SessionEvent[] = [];
  const native = { take: () => events.splice(0) } as unknown as NativeSessions;
  const sessions = new Sessions(() => native, {
    opened: (session, channel) =>
      (channel.handlers = {
        onMessage: ([from, high, low]) => void seen.push([from!, (high! << 8) | low!]),
        onWritable: () => undefined,
        onClosed: () => void closed.push([session, seen.length]),
      }),
    failed: () => undefined,
  });
  events = [...counts.keys()].map((session) => ({ session, kind: "opened", datagramBytesMax: 1200 }) as const);
  sessions.wake();
  events = [...counts].map(([session, count]) => receivedBy(session, count));
  events.push({ session: 2, kind: "closed", reason: "gone" });
  sessions.wake();
  for (const [session, count] of counts)
    expect(seen.filter(([from]) => from === session).map(([, index]) => index)).toEqual(
      Array.from({ length: count }, (_, index) => index),
    );
  expect(closed).toEqual([[2, 1101]]);
  const halfOfFirst = seen.findIndex(([session, index]) => session === 1 && index === 500);
  const ofSecond = seen.slice(0, halfOfFirst).filter(([session]) => session === 2).length;
  expect(Math.abs(ofSecond - 50)).toBeLessThan(5);
});
