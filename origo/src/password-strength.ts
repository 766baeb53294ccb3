/**
 * Password strength: refuses a new password that is guessed soon, whatever its length: repeated characters, common
 * passwords, dates, rows of keys, the user's own name. The length is checked by admin-schema.ts.
 */
import type { ZxcvbnFactory } from "@zxcvbn-ts/core";
import { Refusal } from "./http";

/** Of 0 to 4. Below it 10^8 guesses are enough, which a thief of the hashes makes in weeks. */
const SCORE_MIN = 3;

let estimator: Promise<ZxcvbnFactory> | undefined;

/** The lists of common passwords take 0.1 s to read, so they are read when somebody first chooses a password. */
async function read(): Promise<ZxcvbnFactory> {
  const [core, { dictionary, adjacencyGraphs }] = await Promise.all([
    import("@zxcvbn-ts/core"),
    import("@zxcvbn-ts/language-common"),
  ]);
  return new core.ZxcvbnFactory({ dictionary, graphs: adjacencyGraphs });
}

/** Throws a Refusal for a password that is too weak for the user `name`. */
export async function checkStrength(password: string, name: string): Promise<void> {
  const { score, guessesLog10 } = (await (estimator ??= read())).check(password, [name, "origo", "tributary"]);
  if (score >= SCORE_MIN) return;
  const message =
    `password: about 10^${Math.floor(guessesLog10)} guesses find it, and it must withstand 10^8: ` +
    "use four words that do not belong together, or let a password manager choose";
  throw new Refusal(400, { kind: "badField", field: "password", message });
}
