import { fingerprintOf, Fragmenter, LIMITS } from "@tributary/protocol";
import { Associations, ASSOCIATIONS_MAX, type Association } from "./associations";
import type { ChannelHandlers } from "./channel";

/** What the path does to one association: all of a stretch's messages arrive, but for the lost ones, before its end. */
class FakeAssociation implements Association {
  readonly texts: string[] = [];
  readonly messages: Uint8Array[] = [];
  queuedBytes = 0;
  rttMs: number | undefined = 40;
  closed = false;
  private came = 0;
  private looked = 0;

  send(message: Uint8Array | string): boolean {
    if (typeof message === "string") this.texts.push(message);
    else this.messages.push(message);
    return true;
  }

  close(): void {
    this.closed = true;
  }

  /** The report of a client that has all new messages but the first `lost`. */
  report(lost = 0): string {
    const fresh = this.messages.slice(this.looked);
    this.looked = this.messages.length;
    this.came += Math.max(0, fresh.length - lost);
    return `${this.came} ${fingerprintOf(this.messages.at(-1) ?? new Uint8Array(1))}`;
  }
}

let sequence = 0;
const message = (): Uint8Array => Uint8Array.from([0x11, 0, 0, 0, 1, (sequence >> 16) & 255, (sequence >> 8) & 255, sequence++ & 255]);

function setup(count = 1) {
  const log: string[] = [];
  let words = 0;
  const all = new Associations({ invite: () => `word${++words}` });
  const handlers: ChannelHandlers = {
    handleMessage: (bytes) => void log.push(`message ${bytes.length}`),
    handleWritable: () => undefined,
    handleClosed: (reason) => void log.push(`closed: ${reason}`),
  };
  const members = Array.from({ length: count }, () => new FakeAssociation());
  for (const member of members) all.add(member, () => handlers);
  const join = (): FakeAssociation => {
    const member = new FakeAssociation();
    all.add(member, () => handlers);
    members.push(member);
    return member;
  };
  /** Stretches of 100 ms with 20 messages an association each, or so many. */
  const run = (ms: number, lostInEach = 0, messages = 20): void => {
    for (let atMs = 0; atMs < ms; atMs += 100) {
      for (let index = 0; index < messages * all.count; index++) all.send(message());
      for (const member of members) if (!member.closed) all.handleMessage(member, member.report(lostInEach));
      jest.advanceTimersByTime(100);
    }
  };
  const setRtt = (rttMs: number): void => members.forEach((member) => (member.rttMs = rttMs));
  return { all, members, log, join, run, setRtt };
}

beforeEach(() => jest.useFakeTimers());
afterEach(() => jest.useRealTimers());

test("a message goes over the association with the fewest on their way", () => {
  const { all, members } = setup(3);
  for (let index = 0; index < 9; index++) all.send(message());
  expect(members.map((member) => member.messages.length)).toEqual([3, 3, 3]);
  all.handleMessage(members[1]!, members[1]!.report());
  for (let index = 0; index < 3; index++) all.send(message());
  expect(members.map((member) => member.messages.length)).toEqual([3, 6, 3]);
});

test("a full association is passed over, and its room is not the session's", () => {
  const { all, members } = setup(2);
  members[0]!.queuedBytes = 1e6;
  for (let index = 0; index < 4; index++) all.send(message());
  expect(members[0]!.messages).toHaveLength(0);
  expect(all.room).toBeGreaterThan(0);
});

test("losses while the round trip is near its lowest bring an invitation, one at a time", () => {
  const { run, members, join } = setup();
  run(2000, 1);
  expect(members[0]!.texts).toEqual(["join word1"]);
  run(5000, 1);
  expect(members[0]!.texts).toHaveLength(1);
  join();
  run(2000, 1);
  expect(members[0]!.texts).toEqual(["join word1", "join word2"]);
});

test("so they do where thousands of messages go out in each stretch", () => {
  const { run, members } = setup();
  run(2000, 9, 900);
  expect(members[0]!.texts).toHaveLength(1);
});

test("an invitation that nobody followed is repeated, but not soon", () => {
  const { run, members } = setup();
  run(14_000, 1);
  expect(members[0]!.texts).toHaveLength(1);
  run(5000, 1);
  expect(members[0]!.texts).toHaveLength(2);
});

test("losses under a round trip that has grown are congestion: no invitation", () => {
  const { run, members, setRtt } = setup();
  run(500);
  setRtt(80);
  run(10_000, 1);
  expect(members[0]!.texts).toEqual([]);
});

test("losses just after the round trip was long bring no invitation", () => {
  const { run, members, setRtt } = setup();
  run(500);
  for (let cycle = 0; cycle < 5; cycle++) {
    setRtt(80);
    run(200, 2);
    setRtt(42);
    run(1500);
  }
  expect(members[0]!.texts).toEqual([]);
});

test("bursts of losses, as of a queue that overflows, bring no invitation", () => {
  const { run, members } = setup();
  for (let cycle = 0; cycle < 5; cycle++) {
    run(200, 8);
    run(1800);
  }
  expect(members[0]!.texts).toEqual([]);
});

test("where losses have gone the further ones are closed", () => {
  const { all, run } = setup(3);
  run(5000, 1);
  expect(all.count).toBe(3);
  run(15_000);
  expect(all.count).toBe(1);
});

test("no losses, no invitation", () => {
  const { run, members } = setup();
  run(10_000);
  expect(members[0]!.texts).toEqual([]);
});

test("a client that reports nothing is asked for nothing", () => {
  const { all, members } = setup();
  for (let stretch = 0; stretch < 50; stretch++) {
    for (let index = 0; index < 20; index++) all.send(message());
    jest.advanceTimersByTime(100);
  }
  expect(members[0]!.texts).toEqual([]);
});

test("there are never more than the most", () => {
  const { all, run, join, members } = setup();
  for (let index = 1; index < ASSOCIATIONS_MAX; index++) join();
  expect(all.count).toBe(ASSOCIATIONS_MAX);
  expect(all.add(new FakeAssociation(), () => ({}) as ChannelHandlers)).toBe(false);
  run(5000, 1);
  all.invite();
  expect(members[0]!.texts).toEqual([]);
});

test("a queue that stays closes the further ones, one after another", () => {
  const { all, run, setRtt, members } = setup(4);
  run(500);
  setRtt(90);
  run(4000);
  expect(all.count).toBeLessThan(4);
  run(20_000);
  expect(all.count).toBe(1);
  expect(members.map(({ closed }) => closed)).toEqual([false, true, true, true]);
});

test("the further ones are closed when nothing was sent for long", () => {
  const { all, run } = setup(3);
  run(1000);
  jest.advanceTimersByTime(25_000);
  expect(all.count).toBe(1);
  expect(jest.getTimerCount()).toBe(0);
});

test("the session outlives each association but the last", () => {
  const { all, members, log } = setup(3);
  all.remove(members[0]!, "lost");
  all.remove(members[1]!, "lost");
  all.remove(members[1]!, "lost");
  expect(log).toEqual([]);
  expect(all.send(message())).toBe(true);
  expect(members[2]!.messages).toHaveLength(1);
  all.remove(members[2]!, "lost too");
  expect(log).toEqual(["closed: lost too"]);
  expect(all.add(new FakeAssociation(), () => ({}) as ChannelHandlers)).toBe(false);
  expect(jest.getTimerCount()).toBe(0);
});

test("a close of one's own closes all of them and is not told", () => {
  const { all, members, log } = setup(2);
  all.close();
  members.forEach((member) => all.remove(member, "closed"));
  expect(members.every(({ closed }) => closed)).toBe(true);
  expect(log).toEqual([]);
});

test("texts that are no reports, and reports of what was never sent, change nothing", () => {
  const { all, members, log } = setup(2);
  for (let index = 0; index < 8; index++) all.send(message());
  const newest = fingerprintOf(members[0]!.messages.at(-1)!);
  for (const text of ["", "join me", "-1 2", "1e9 3", `${"9".repeat(5000)} 1`, "4 12345", "x".repeat(16_384)]) all.handleMessage(members[0]!, text);
  all.handleMessage(members[0]!, `999999999999 ${newest}`);
  for (let index = 0; index < 4; index++) all.send(message());
  expect(members.map((member) => member.messages.length)).toEqual([8, 4]);
  expect(log).toEqual([]);
});

test("a client's message in pieces is one message, and a piece is none", () => {
  const { all, members, log } = setup();
  const pieces = new Fragmenter().split(new Uint8Array(3000), LIMITS.channelMessageBytesMax);
  for (const piece of pieces) all.handleMessage(members[0]!, piece);
  all.handleMessage(members[0]!, pieces[0]!);
  expect(log).toEqual(["message 3000"]);
});
