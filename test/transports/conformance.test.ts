/**
 * Runs conformance.ts for each transport, in a process of its own, and checks each case. WebTransport is skipped if the
 * native transport is not built.
 */
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import path from "node:path";
import { loadNativeTransport } from "@tributary/native-transport";

const SCRIPT = path.resolve(__dirname, "../dist/transports/conformance.js");
/** A copy of the titles in conformance.ts. Importing that file would load the libraries into Jest. */
const TITLES = [
  "messages of 1 to 1,156 bytes arrive unchanged in both directions",
  "the longest message (16,384 bytes) arrives unchanged",
  "at least 90 % of 2,000 messages arrive if the sender respects the room",
  "garbage from the peer and from strangers does no harm",
  "the client sees the proxy's close once",
  "the proxy sees the client's close, and the client gets no event",
  "an aborted attempt rejects with the signal's reason",
  "an attempt fails if nobody listens",
  "hundreds of connects and closes leak no descriptors and no memory",
];

jest.setTimeout(150_000);

interface Outcome {
  case: string;
  ok: boolean;
  detail: string;
}

function run(words: readonly string[], env: NodeJS.ProcessEnv): Promise<Outcome[]> {
  if (!existsSync(SCRIPT)) throw new Error(`${SCRIPT} is missing: run npm run build first`);
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [SCRIPT, ...words], {
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, ...env },
    });
    let [out, err] = ["", ""];
    child.stdout.on("data", (text) => (out += text));
    child.stderr.on("data", (text) => (err += text));
    child.once("close", () => {
      if (out === "") reject(new Error(`the suite printed no outcome: ${err}`));
      else
        resolve(
          out
            .trimEnd()
            .split("\n")
            .map((line) => JSON.parse(line) as Outcome),
        );
    });
  });
}

const { native } = loadNativeTransport();
const WITHOUT_NATIVE = { TRIBUTARY_NATIVE_TRANSPORT: "off" };
const withNative = native ? [["webrtc"], ["webrtc", "client"], ["webrtc", "proxy"], ["webtransport"]] : [];
const suites: [string[], NodeJS.ProcessEnv][] = [
  [["webrtc"], WITHOUT_NATIVE],
  ...[["udp"], ...withNative].map((words): [string[], NodeJS.ProcessEnv] => [words, {}]),
];

describe.each(suites)("transport %j %j", (words, env) => {
  let outcomes: Outcome[];
  beforeAll(async () => {
    outcomes = await run(words, env);
  });

  test.each(TITLES)("%s", (title) => {
    const { ok, detail } = outcomes.find((outcome) => outcome.case === title) ?? {
      ok: false,
      detail: "the case did not run",
    };
    expect(ok ? "" : detail).toBe("");
  });

  test("every case runs", () => {
    expect(outcomes.map((outcome) => outcome.case)).toEqual(TITLES);
  });
});
