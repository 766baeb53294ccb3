/** Each transport in a process of its own, from the built files; WebTransport where its native part is built. */
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import path from "node:path";
import { loadNativeTransport } from "@tributary/native-transport";

const SCRIPT = path.resolve(__dirname, "../dist/transports/conformance.js");
/** As in conformance.ts, which a test cannot import: it would load the libraries into Jest. */
const TITLES = [
  "messages of 1 to 1,156 bytes arrive as they were sent, both ways",
  "the longest message, 16,384 bytes, arrives whole",
  "2,000 messages that heed the room arrive but for a few",
  "garbage from the peer and from strangers harms nobody",
  "the proxy's close is seen by the client, once",
  "the client's close is seen by the proxy, and not told to the client",
  "an attempt that is given up rejects with the signal's reason",
  "where nobody listens, the attempt fails",
  "hundreds of connects and closes leave no descriptor behind, and further ones no memory",
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
      if (out === "") reject(new Error(`the suite ended: ${err}`));
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
    const { ok, detail } = outcomes.find((outcome) => outcome.case === title) ?? { ok: false, detail: "was not run" };
    expect(ok ? "" : detail).toBe("");
  });

  test("has run every case", () => {
    expect(outcomes.map((outcome) => outcome.case)).toEqual(TITLES);
  });
});
