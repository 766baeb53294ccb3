/** The digest that a file must have: `--checksum sha-256=HEX`. */
import { createHash, type Hash } from "node:crypto";
import { InvalidArgumentError } from "commander";

const HEX_DIGITS: Record<string, number> = { md5: 32, sha1: 40, sha224: 56, sha256: 64, sha384: 96, sha512: 128 };

export interface Checksum {
  /** As Node names it, e.g. `sha256`. */
  algorithm: string;
  /** In lower case. */
  hex: string;
}

export function parseChecksum(text: string): Checksum {
  const [, name = "", hex = ""] = /^([\w-]+)[=:]([0-9a-f]+)$/i.exec(text.trim()) ?? [];
  const algorithm = name.toLowerCase().replace("-", "");
  const digits = HEX_DIGITS[algorithm];
  if (digits === undefined)
    throw new InvalidArgumentError(`Allowed: TYPE=HEX with ${Object.keys(HEX_DIGITS).join(", ")}.`);
  if (hex.length !== digits)
    throw new InvalidArgumentError(`${name} has ${digits} hexadecimal digits: got ${hex.length}.`);
  return { algorithm, hex: hex.toLowerCase() };
}

export class Check {
  readonly #checksum: Checksum;
  readonly #hash: Hash;

  constructor(checksum: Checksum) {
    this.#checksum = checksum;
    this.#hash = createHash(checksum.algorithm);
  }

  update(bytes: Uint8Array): void {
    this.#hash.update(bytes);
  }

  /** A sentence if the digest is another one. */
  problem(): string | undefined {
    const { algorithm, hex } = this.#checksum;
    const got = this.#hash.digest("hex");
    return got === hex ? undefined : `The ${algorithm} digest is wrong: got ${got}, expected ${hex}.`;
  }
}
