/**
 * Draws the extension's icons into static/icons: several thin streams that join in a play mark.
 * Run this after a change of the drawing: node extension/scripts/make-icons.js. The PNG files are committed.
 */
const fs = require("node:fs");
const path = require("node:path");
const zlib = require("node:zlib");

const SAMPLES = 8;
const OUT = path.join(__dirname, "..", "static", "icons");

const mix = (a, b, t) => a.map((value, index) => value + (b[index] - value) * t);
const clamp = (value, low, high) => Math.min(high, Math.max(low, value));
const smooth = (t) => t * t * (3 - 2 * t);

/** True inside the unit square with rounded corners. */
function inTile(x, y) {
  const corner = 0.23;
  const dx = Math.max(Math.abs(x - 0.5) - (0.5 - corner), 0);
  const dy = Math.max(Math.abs(y - 0.5) - (0.5 - corner), 0);
  return dx * dx + dy * dy <= corner * corner;
}

/** True on one of the `count` streams, which start apart at the left and meet at the play mark. */
function onStream(x, y, count, width) {
  const from = 0.13;
  const to = 0.52;
  if (x < from - width || x > to + 0.05) return false;
  const along = clamp((x - from) / (to - from), 0, 1);
  const t = smooth(along);
  return Array.from({ length: count }, (_, index) => (index / (count - 1) - 0.5) * 0.62).some((offset) => {
    const slope = (6 * along * (1 - along) * -offset * 0.82) / (to - from);
    const distance = Math.abs(y - (0.5 + offset * (1 - 0.82 * t))) / Math.sqrt(1 + slope * slope);
    const beyond = Math.max(from - x, 0);
    return Math.hypot(distance, beyond) <= width;
  });
}

/** True in the play mark: a triangle with rounded corners that points to the right. */
function inMark(x, y) {
  const round = 0.045;
  const [left, right, half] = [0.53, 0.83, 0.2];
  const edge = (px, py) => px >= left && Math.abs(py - 0.5) <= half * (1 - (px - left) / (right - left));
  if (edge(x, y)) return true;
  const corners = [
    [left, 0.5 - half],
    [left, 0.5 + half],
    [right, 0.5],
  ];
  return corners.some(([ax, ay], index) => {
    const [bx, by] = corners[(index + 1) % 3];
    const t = clamp(((x - ax) * (bx - ax) + (y - ay) * (by - ay)) / ((bx - ax) ** 2 + (by - ay) ** 2), 0, 1);
    return Math.hypot(x - ax - t * (bx - ax), y - ay - t * (by - ay)) <= round;
  });
}

/** Colour of a point as [red, green, blue, alpha], 0..255. */
function colour(x, y, size) {
  if (!inTile(x, y)) return [0, 0, 0, 0];
  const water = mix([13, 148, 136], [29, 78, 216], clamp(0.55 * x + 0.6 * y - 0.1, 0, 1));
  if (inMark(x, y)) return [255, 255, 255, 255];
  const isSmall = size <= 32;
  if (onStream(x, y, isSmall ? 3 : 4, isSmall ? 0.05 : 0.027))
    return [...mix([153, 246, 228], [255, 255, 255], clamp((x - 0.15) / 0.4, 0, 1)), 255];
  return [...water, 255];
}

/** RGBA rows, each after its filter byte. */
function draw(size) {
  const rows = Buffer.alloc(size * (size * 4 + 1));
  for (let row = 0; row < size; row++) {
    for (let column = 0; column < size; column++) {
      const sum = [0, 0, 0, 0];
      for (let sample = 0; sample < SAMPLES * SAMPLES; sample++) {
        const x = (column + ((sample % SAMPLES) + 0.5) / SAMPLES) / size;
        const y = (row + (Math.floor(sample / SAMPLES) + 0.5) / SAMPLES) / size;
        const [r, g, b, a] = colour(x, y, size);
        [r * a, g * a, b * a, a].forEach((value, index) => (sum[index] += value));
      }
      const alpha = sum[3] || 1;
      const pixel = [sum[0] / alpha, sum[1] / alpha, sum[2] / alpha, sum[3] / (SAMPLES * SAMPLES)];
      rows.set(pixel.map(Math.round), row * (size * 4 + 1) + 1 + column * 4);
    }
  }
  return rows;
}

function chunk(type, data) {
  const body = Buffer.concat([Buffer.from(type, "latin1"), data]);
  const framed = Buffer.alloc(body.length + 8);
  framed.writeUInt32BE(data.length, 0);
  body.copy(framed, 4);
  framed.writeUInt32BE(zlib.crc32(body), body.length + 4);
  return framed;
}

function png(size) {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(size, 0);
  header.writeUInt32BE(size, 4);
  header.set([8, 6, 0, 0, 0], 8);
  const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
  return Buffer.concat([
    signature,
    chunk("IHDR", header),
    chunk("IDAT", zlib.deflateSync(draw(size), { level: 9 })),
    chunk("IEND", Buffer.alloc(0)),
  ]);
}

fs.mkdirSync(OUT, { recursive: true });
for (const size of [16, 32, 48, 128]) fs.writeFileSync(path.join(OUT, `${size}.png`), png(size));
