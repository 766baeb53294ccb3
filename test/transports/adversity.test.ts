/** Runs adversity.ts in a process of its own and checks each case. Skipped if the native transport is not built. */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import path from "node:path";
import { loadNativeTransport } from "@tributary/native-transport";

const SCRIPT = path.resolve(__dirname, "../dist/transports/adversity.js");
const TITLES = [
  "a good path: WebTransport is used",
  "QUIC alone is blocked: WebRTC is used",
  "the proxy has another certificate than Origo lists: WebRTC is used",
  "all datagrams are blocked: HTTP is used, and the record says so",
  "packets above 1,200 bytes are blocked: WebRTC is used",
  "packets above 1,200 bytes are blocked and the URL is long: WebRTC is used",
  "the client's address changes during a download: the session continues",
  "the client's address changes during a download over WebRTC: the session continues",
  "QUIC's path dies during a download: WebRTC takes over and keeps the received bytes",
  "the proxy's clock is a day ahead: WebTransport and WebRTC both work",
  "the proxy's clock is a day behind: WebTransport and WebRTC both work",
];

jest.setTimeout(120_000);

interface Outcome {
  case: string;
  ok: boolean;
  detail: string;
}

const { native } = loadNativeTransport();

(native ? describe : describe.skip)("hostile paths", () => {
  let outcomes: Outcome[];
  let ended: string;
  beforeAll(() => {
    if (!existsSync(SCRIPT)) throw new Error(`${SCRIPT} is missing: run npm run build first`);
    const { stdout, stderr, status, signal } = spawnSync(process.execPath, [SCRIPT], { encoding: "utf8" });
    ended = `did not run: the process ended with ${signal ?? `code ${status}`}; ${stderr.slice(-2000)}`;
    if (stdout === "") throw new Error(`the process printed no outcome: ${stderr}`);
    outcomes = stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as Outcome);
  });

  test.each(TITLES)("%s", (title) => {
    const { ok, detail } = outcomes.find((outcome) => outcome.case === title) ?? { ok: false, detail: ended };
    expect(ok ? "" : detail).toBe("");
  });

  test("every case runs", () => {
    expect(outcomes.map((outcome) => outcome.case)).toEqual(TITLES);
  });
});
