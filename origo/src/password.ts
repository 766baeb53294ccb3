/** Passwords: stored with scrypt (RFC 7914) and a salt each. Trying one password takes 32 MiB and about 0.1 s. */
import { randomBytes, scrypt, timingSafeEqual, type ScryptOptions } from "node:crypto";

const COST_LOG2 = 15;
const BLOCK = 8;
const PARALLEL = 1;
const KEY_BYTES = 32;
/** Twice the memory that one derivation takes. */
const MEMORY_BYTES_MAX = 256 * 2 ** COST_LOG2 * BLOCK;

/** Returns `scrypt$LOG2(N)$R$P$SALT$KEY`, with salt and key in base64url. */
export async function keep(password: string): Promise<string> {
  const salt = randomBytes(16);
  const key = await derive(password, salt, COST_LOG2, BLOCK, PARALLEL);
  return ["scrypt", COST_LOG2, BLOCK, PARALLEL, salt.toString("base64url"), key.toString("base64url")].join("$");
}

/** Takes the same time for a user who does not exist (`kept` is undefined) as for one who does. */
export async function matches(password: string, kept: string | undefined): Promise<boolean> {
  const [scheme, cost, block, parallel, salt = "", key = ""] = (kept ?? NOBODY).split("$");
  if (scheme !== "scrypt") throw new Error("a password is stored in a form that this Origo cannot read");
  const expected = Buffer.from(key, "base64url");
  const got = await derive(password, Buffer.from(salt, "base64url"), Number(cost), Number(block), Number(parallel));
  return timingSafeEqual(got, expected) && kept !== undefined;
}

const NOBODY = ["scrypt", COST_LOG2, BLOCK, PARALLEL, "", Buffer.alloc(KEY_BYTES).toString("base64url")].join("$");

function derive(password: string, salt: Buffer, costLog2: number, r: number, p: number): Promise<Buffer> {
  const options: ScryptOptions = { N: 2 ** costLog2, r, p, maxmem: MEMORY_BYTES_MAX };
  return new Promise((resolve, reject) => {
    scrypt(password.normalize("NFC"), salt, KEY_BYTES, options, (error, key) => (error ? reject(error) : resolve(key)));
  });
}
