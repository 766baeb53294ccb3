import { Seats, type Seat } from "./seats";

let nowMs = 0;
const ended: string[] = [];

class Place implements Seat {
  readonly sinceMs = nowMs;
  constructor(
    readonly client: string,
    readonly name: string,
    readonly isBusy = false,
  ) {}
  idleSinceMs(): number | undefined {
    return this.isBusy ? undefined : this.sinceMs;
  }
  end(): void {
    ended.push(this.name);
  }
}

function fill(seats: Seats<Place>, client: string, count: number, isBusy = false): void {
  for (let index = 0; index < count; index++) {
    nowMs++;
    expect(seats.take(new Place(client, `${client}${index}`, isBusy))).toBe(true);
  }
}

beforeEach(() => {
  nowMs = 0;
  ended.length = 0;
});

test("seats: while there is room, one client may take all of it", () => {
  const seats = new Seats<Place>(() => 8);
  fill(seats, "a", 8);
  expect([seats.taken, ended]).toEqual([8, []]);
});

test("seats: a newcomer gets the longest idle seat of the client with the most", () => {
  const seats = new Seats<Place>(() => 8);
  fill(seats, "v", 2);
  fill(seats, "a", 6);
  expect(seats.take(new Place("b", "b0"))).toBe(true);
  expect(seats.take(new Place("c", "c0"))).toBe(true);
  expect(ended).toEqual(["a0", "a1"]);
  expect(seats.taken).toBe(8);
});

test("seats: a busy seat goes for a newcomer that then holds no more than its client", () => {
  const seats = new Seats<Place>(() => 4);
  fill(seats, "a", 4, true);
  fill(seats, "b", 2, true);
  expect(ended).toEqual(["a3", "a2"]);
  expect(seats.take(new Place("b", "b2", true))).toBe(false);
  expect(seats.take(new Place("c", "c0", true))).toBe(true);
  expect(ended).toEqual(["a3", "a2", "a1"]);
});

test("seats: a client with many takes none of a client with fewer, and may exchange an idle one of its own", () => {
  const seats = new Seats<Place>(() => 4);
  fill(seats, "v", 1);
  fill(seats, "a", 3);
  fill(seats, "a", 20);
  expect(ended).toHaveLength(20);
  expect(ended).not.toContain("v0");
  const busy = new Seats<Place>(() => 4);
  fill(busy, "v", 1);
  fill(busy, "a", 3, true);
  expect(busy.take(new Place("a", "a9"))).toBe(false);
});

test("seats: among equals the longest idle seat goes, and a seat that is left twice is freed once", () => {
  const seats = new Seats<Place>(() => 2);
  const first = new Place("a", "a0");
  expect(seats.take(first)).toBe(true);
  fill(seats, "b", 1);
  expect(seats.take(new Place("c", "c0"))).toBe(true);
  expect(ended).toEqual(["a0"]);
  seats.leave(first);
  expect(seats.taken).toBe(2);
});

test("seats: a limit of 0 leaves no seat", () => {
  expect(new Seats<Place>(() => 0).take(new Place("a", "a0"))).toBe(false);
});
