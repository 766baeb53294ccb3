/**
 * Downloads over paths that are against them, in a process of their own; WebTransport's cases where its native part is
 * built.
 */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import path from "node:path";
import { loadNativeTransport } from "@tributary/native-transport";

const SCRIPT = path.resolve(__dirname, "../dist/transports/adversity.js");
const TITLES = [
  "a path with nothing wrong: WebTransport carries the download",
  "QUIC alone is blocked: WebRTC carries it",
  "the certificate is not the one announced: WebRTC carries it",
  "no datagram gets through: it goes over HTTP, and the record says so",
  "no packet of more than 1,200 bytes gets through: WebRTC carries it",
  "no packet of more than 1,200 bytes gets through, and the address is long: WebRTC carries it",
  "the client's address changes in mid-download: the session goes on",
  "the client's address changes in mid-download over WebRTC: the session goes on",
  "QUIC's path goes dead in mid-download: WebRTC takes over, and what has come is kept",
  "the proxy's clock is a day ahead: WebTransport carries it, and WebRTC does",
  "the proxy's clock is a day behind: WebTransport carries it, and WebRTC does",
];

jest.setTimeout(120_000);

interface Outcome {
  case: string;
  ok: boolean;
  detail: string;
}

const { native } = loadNativeTransport();

(native ? describe : describe.skip)("a path against the download", () => {
  let outcomes: Outcome[];
  let ended: string;
  beforeAll(() => {
    if (!existsSync(SCRIPT)) throw new Error(`${SCRIPT} is missing: run npm run build first`);
    const { stdout, stderr, status, signal } = spawnSync(process.execPath, [SCRIPT], { encoding: "utf8" });
    ended = `was not run: the process ended with ${signal ?? `code ${status}`}; ${stderr.slice(-2000)}`;
    if (stdout === "") throw new Error(`the cases ended: ${stderr}`);
    outcomes = stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as Outcome);
  });

  test.each(TITLES)("%s", (title) => {
    const { ok, detail } = outcomes.find((outcome) => outcome.case === title) ?? { ok: false, detail: ended };
    expect(ok ? "" : detail).toBe("");
  });

  test("every case was run", () => {
    expect(outcomes.map((outcome) => outcome.case)).toEqual(TITLES);
  });
});
