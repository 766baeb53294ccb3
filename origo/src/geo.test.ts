/** Tests geo with a small MMDB, written here by the specification of the format (MaxMind DB 2.0). */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openGeo } from "./geo";

const text = (value: string): Buffer => Buffer.concat([Buffer.from([(2 << 5) | value.length]), Buffer.from(value)]);
function double(value: number): Buffer {
  const bytes = Buffer.alloc(9, (3 << 5) | 8);
  bytes.writeDoubleBE(value, 1);
  return bytes;
}
const uint = (value: number): Buffer =>
  Buffer.from([(6 << 5) | 4, value >>> 24, (value >>> 16) & 255, (value >>> 8) & 255, value & 255]);
const map = (entries: Record<string, Buffer>): Buffer =>
  Buffer.concat([
    Buffer.from([(7 << 5) | Object.keys(entries).length]),
    ...Object.entries(entries).flatMap(([key, value]) => [text(key), value]),
  ]);

/** A database with one network, 203.0.0.0/8, and one place: a chain of eight nodes with 24-bit records. */
function mmdb(): Buffer {
  const [bits, nodes] = [[...(203).toString(2)].map(Number), 8];
  const tree = Buffer.alloc(nodes * 6);
  bits.forEach((bit, node) => {
    const next = node === nodes - 1 ? nodes + 16 : node + 1;
    tree.writeUIntBE(bit === 0 ? next : nodes, node * 6, 3);
    tree.writeUIntBE(bit === 1 ? next : nodes, node * 6 + 3, 3);
  });
  const data = map({ location: map({ latitude: double(47.4979), longitude: double(19.0402) }) });
  const metadata = map({
    binary_format_major_version: uint(2),
    binary_format_minor_version: uint(0),
    build_epoch: uint(1),
    database_type: text("test"),
    description: map({}),
    ip_version: uint(4),
    languages: Buffer.from([0, 4]),
    node_count: uint(nodes),
    record_size: uint(24),
  });
  return Buffer.concat([tree, Buffer.alloc(16), data, Buffer.from("\xAB\xCD\xEFMaxMind.com", "latin1"), metadata]);
}

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "origo-geo-"));
  await writeFile(join(folder, "places.mmdb"), mmdb());
  await writeFile(join(folder, "junk.mmdb"), "junk");
});
afterAll(() => rm(folder, { recursive: true }));

test.each([
  ["203.0.113.9", { lat: 47, lon: 19 }],
  ["::ffff:203.0.113.9", { lat: 47, lon: 19 }],
  ["204.0.113.9", undefined],
  ["127.0.0.1", undefined],
  ["10.0.0.1", undefined],
  ["2001:db8::1", undefined],
  ["nobody", undefined],
  ["", undefined],
])("geo: %s is at %j", async (address, place) => {
  expect((await openGeo(join(folder, "places.mmdb")))(address)).toEqual(place);
});

test("geo: without a file no address has a place, and a file that is not a database is an error", async () => {
  expect((await openGeo(undefined))("203.0.113.9")).toBeUndefined();
  await expect(openGeo(join(folder, "junk.mmdb"))).rejects.toThrow();
  await expect(openGeo(join(folder, "none.mmdb"))).rejects.toThrow("none.mmdb");
});
