import { clientOf, Clients, SessionWork } from "./clients";

test.each([
  ["203.0.113.7", "203.0.113.7"],
  ["::ffff:203.0.113.7", "203.0.113.7"],
  ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
  ["2001:db8:1:2::", "2001:db8:1:2::/64"],
  ["fe80::1%eth0", "fe80:0:0:0::/64"],
  ["", ""],
])("clients: the client at %s is %s", (address, client) => {
  expect(clientOf(address)).toBe(client);
});

const limits = { addressBytes: 1000, addressOffers: 2, controlPerMille: 400 };

test("clients: an address gets so many bytes in ten minutes, sent to it or fetched for it", () => {
  let nowMs = 0;
  const clients = new Clients(
    () => limits,
    () => nowMs,
  );
  const client = clients.of("203.0.113.7");
  client.noteSent(999);
  expect(client.bytesRefusal()).toBeUndefined();
  clients.of("::ffff:203.0.113.7").noteSent(1);
  expect(client.bytesRefusal()).toMatchObject({ kind: "budgetSpent", got: 1000, limit: 1000 });
  expect(clients.of("203.0.113.8").bytesRefusal()).toBeUndefined();
  nowMs = 600_000;
  expect(client.bytesRefusal()).toBeUndefined();
  client.noteOrigin(1000);
  expect(client.bytesRefusal()?.kind).toBe("budgetSpent");
});

test("clients: an address makes so many offers in a minute", () => {
  let nowMs = 0;
  const client = new Clients(
    () => limits,
    () => nowMs,
  ).of("203.0.113.7");
  expect([client.noteOffer(), client.noteOffer()]).toEqual([undefined, undefined]);
  expect(client.noteOffer()).toMatchObject({ kind: "tooManySessions", got: 3, limit: 2 });
  nowMs = 60_000;
  expect(client.noteOffer()).toBeUndefined();
});

test("clients: who takes more than an equal part of the time for messages waits, and is dropped if it goes on", () => {
  const clients = new Clients(() => limits);
  const [viewer, flood] = [clients.of("203.0.113.7"), clients.of("203.0.113.8")];
  const [watching, flooding, neighbour] = [new SessionWork(), new SessionWork(), new SessionWork()];
  let nowMs = 1000;
  const work = (): string => {
    const answer = flood.mayWork(nowMs, flooding);
    if (answer === "yes") flood.noteWork(1, flooding);
    return answer;
  };
  for (let window = 0; window < 20; window++, nowMs += 100) {
    expect(viewer.mayWork(nowMs, watching)).toBe("yes");
    viewer.noteWork(1, watching);
    const answers = Array.from({ length: 100 }, work);
    expect(answers.filter((answer) => answer === "yes")).toHaveLength(39);
    expect(answers.at(-1)).toBe("later");
    expect(viewer.mayWork(nowMs, watching)).toBe("yes");
    expect(flood.mayWork(nowMs, neighbour)).toBe("yes");
  }
  expect(Array.from({ length: 100 }, work).at(-1)).toBe("drop");
  expect(viewer.mayWork(nowMs, watching)).toBe("yes");
  nowMs += 1000;
  expect(work()).toBe("yes");
});
