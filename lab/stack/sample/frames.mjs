/**
 * Draws the picture of the sample video: four streams join into one river, and packets drift along. There is no random
 * source, so a frame number always gives the same bytes. Writes raw rgb24 frames to stdout. make-media.sh adds the
 * clock and the sound. Usage: node frames.mjs WIDTH HEIGHT FRAMES_PER_SECOND SECONDS
 */
const [width, height, framesPerSecond, seconds] = process.argv.slice(2).map(Number);
if (![width, height, framesPerSecond, seconds].every((value) => Number.isInteger(value) && value > 0)) {
  console.error("usage: node frames.mjs WIDTH HEIGHT FRAMES_PER_SECOND SECONDS (positive whole numbers)");
  process.exit(2);
}

const STREAMS = [
  { from: 0.14, colour: [255, 176, 84], phase: 0.0 },
  { from: 0.36, colour: [238, 96, 128], phase: 1.9 },
  { from: 0.63, colour: [92, 214, 180], phase: 3.7 },
  { from: 0.87, colour: [86, 156, 255], phase: 5.2 },
];
const PACKETS_PER_STREAM = 26;
const GLOW_RADIUS = Math.round(height * 0.12);

/** Brightness 0..1 by distance in eighths of a pixel: a bright core with a soft halo. */
const GLOW_STEPS = 8 * GLOW_RADIUS;
const glow = Float32Array.from({ length: GLOW_STEPS + 1 }, (_, step) => {
  const d = step / GLOW_STEPS;
  return (0.85 * Math.exp(-d * d * 90) + 0.3 * Math.exp(-d * d * 9)) * (1 - d);
});

const smooth = (x) => x * x * (3 - 2 * x);

/** Height of a stream's middle in pixels at column share x (0 left, 1 right) and time t in seconds. */
function streamY(stream, x, t) {
  const merged = smooth(Math.min(1, Math.max(0, (x - 0.18) / 0.5)));
  const sway = 0.035 * Math.sin(7 * x - 1.1 * t + stream.phase) + 0.02 * Math.sin(13 * x - 1.7 * t + 2 * stream.phase);
  const river = 0.5 + 0.05 * Math.sin(4 * x - 0.8 * t) + (stream.from - 0.5) * 0.1;
  return height * ((stream.from + sway) * (1 - merged) + (river + sway * 0.35) * merged);
}

function background(t) {
  const rows = new Float32Array(height * 3);
  const drift = 0.5 + 0.5 * Math.sin((2 * Math.PI * t) / 24);
  for (let y = 0; y < height; y++) {
    const v = y / height;
    rows[3 * y] = 10 + 16 * v + 10 * drift * (1 - v);
    rows[3 * y + 1] = 16 + 20 * (1 - v) + 6 * drift * v;
    rows[3 * y + 2] = 40 + 34 * (1 - v) + 10 * drift;
  }
  return rows;
}

function addStreams(light, t) {
  for (const stream of STREAMS) {
    for (let x = 0; x < width; x++) {
      const middle = streamY(stream, x / width, t);
      const shimmer = 0.85 + 0.15 * Math.sin(0.02 * x - 3 * t + stream.phase);
      const first = Math.max(0, Math.round(middle) - GLOW_RADIUS);
      const last = Math.min(height - 1, Math.round(middle) + GLOW_RADIUS);
      for (let y = first; y <= last; y++) {
        const brightness = shimmer * glow[Math.min(GLOW_STEPS, Math.round(8 * Math.abs(y - middle)))];
        const at = 3 * (y * width + x);
        for (let c = 0; c < 3; c++) light[at + c] += brightness * stream.colour[c];
      }
    }
  }
}

function addPacket(light, centreX, centreY, radius, colour, brightness) {
  for (let y = Math.max(0, Math.floor(centreY - radius)); y <= Math.min(height - 1, centreY + radius); y++) {
    for (let x = Math.max(0, Math.floor(centreX - radius)); x <= Math.min(width - 1, centreX + radius); x++) {
      const d = Math.hypot(x - centreX, y - centreY) / radius;
      if (d >= 1) continue;
      const at = 3 * (y * width + x);
      for (let c = 0; c < 3; c++) light[at + c] += brightness * (1 - d * d) * (110 + 0.6 * colour[c]);
    }
  }
}

function addPackets(light, t) {
  for (const stream of STREAMS) {
    for (let index = 0; index < PACKETS_PER_STREAM; index++) {
      const lane = Math.sin(index * 12.9898 + stream.phase * 78.233);
      const speed = 0.075 + 0.02 * Math.sin(index * 3.1 + stream.phase);
      const x = (((index / PACKETS_PER_STREAM + speed * t) % 1) + 1) % 1;
      const y = streamY(stream, x, t) + lane * height * 0.022;
      addPacket(light, x * width, y, height * (0.007 + 0.003 * Math.abs(lane)), stream.colour, 0.9);
    }
  }
}

function frame(index) {
  const t = index / framesPerSecond;
  const light = new Float32Array(width * height * 3);
  const rows = background(t);
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) light.set(rows.subarray(3 * y, 3 * y + 3), 3 * (y * width + x));
  }
  addStreams(light, t);
  addPackets(light, t);
  return Uint8ClampedArray.from(light);
}

for (let index = 0; index < framesPerSecond * seconds; index++) {
  if (!process.stdout.write(frame(index))) await new Promise((resolve) => process.stdout.once("drain", resolve));
}
