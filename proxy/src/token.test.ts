import { generateKeyPairSync, sign, type KeyObject } from "node:crypto";
import { OrigoKeys } from "./origo-keys";
import { TokenGate } from "./token";

const NOW_MS = 1_790_000_000_000;
const { privateKey, publicKey } = generateKeyPairSync("ed25519");
const PEM = publicKey.export({ type: "spki", format: "pem" }).toString();
const CLAIMS = {
  iss: "origo",
  sub: "client",
  aud: ["p1", "p2"],
  jti: "1",
  bytes: 1000,
  iat: NOW_MS / 1000,
  exp: NOW_MS / 1000 + 600,
};

const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");
function tokenOf(claims: object = {}, header: object = {}, key: KeyObject = privateKey): string {
  const text = `${part({ alg: "EdDSA", typ: "JWT", kid: "k", ...header })}.${part({ ...CLAIMS, ...claims })}`;
  return `${text}.${sign(null, Buffer.from(text), key).toString("base64url")}`;
}

function gateOf(required = true) {
  const clock = { ms: NOW_MS };
  const logged: string[] = [];
  const keys = new OrigoKeys({
    nowMs: () => clock.ms,
    log: (event, fields) => void logged.push(`${event} ${fields?.["key"]}`),
  });
  keys.setKeys({ k: PEM });
  keys.setId("p1");
  return { gate: new TokenGate({ required: () => required, keys }), keys, clock, logged };
}

test("token: if no token is required, every request is admitted", () => {
  expect(gateOf(false).gate.admit(undefined)).toBeUndefined();
  expect(gateOf(false).gate.admit("junk")).toBeUndefined();
});

test.each([
  ["no token", undefined, "tokenMissing"],
  ["junk", "junk", "tokenRefused"],
  ["empty parts", "..", "tokenRefused"],
  ["a fourth part", `${tokenOf()}.x`, "tokenRefused"],
  ["another key's signature", tokenOf({}, {}, generateKeyPairSync("ed25519").privateKey), "tokenRefused"],
  ["an unknown key", tokenOf({}, { kid: "other" }), "tokenRefused"],
  ["no signature and alg none", `${part({ alg: "none", kid: "k" })}.${part(CLAIMS)}.`, "tokenRefused"],
  [
    "claims changed after signing",
    tokenOf().replace(/\.[^.]+\./, `.${part({ ...CLAIMS, bytes: 1e9 })}.`),
    "tokenRefused",
  ],
  ["another issuer", tokenOf({ iss: "other" }), "tokenRefused"],
  ["other proxies", tokenOf({ aud: ["p2"] }), "tokenRefused"],
  ["an expired one", tokenOf({ exp: NOW_MS / 1000 - 31 }), "tokenExpired"],
])("token: %s is refused", (_name, token, kind) => {
  expect(gateOf().gate.admit(token)).toMatchObject({ kind });
});

test("token: a token is valid until 30 s after its end, also if it was used before", () => {
  const { gate, clock } = gateOf();
  clock.ms = CLAIMS.exp * 1000 + 30_000;
  expect(gate.admit(tokenOf())).toMatchObject({ leftBytes: 1000 });
  clock.ms += 1;
  expect(gate.admit(tokenOf())).toMatchObject({ kind: "tokenExpired" });
});

test("token: requests share the bytes of a token, and a token without bytes is refused", () => {
  const { gate } = gateOf();
  const first = gate.admit(tokenOf()) as { leftBytes: number };
  first.leftBytes -= 999;
  expect(gate.admit(tokenOf())).toBe(first);
  first.leftBytes -= 1;
  expect(gate.admit(tokenOf())).toMatchObject({ kind: "budgetSpent", limit: 1000 });
  expect(gate.admit(tokenOf({ jti: "2" }))).toMatchObject({ leftBytes: 1000 });
});

test("token: another spelling of the signature does not give new bytes", () => {
  const { gate } = gateOf();
  const token = tokenOf();
  (gate.admit(token) as { leftBytes: number }).leftBytes = 0;
  const [, last] = /(.)$/.exec(token)!;
  const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  const sameBits = token.slice(0, -1) + alphabet[alphabet.indexOf(last!) + 1];
  for (const other of [`${token}=`, `${token}==`, `${token} `, `${token}\n`, `${token}!`, sameBits])
    expect(gate.admit(other)).toMatchObject({ kind: "tokenRefused" });
  expect(gate.admit(token)).toMatchObject({ kind: "budgetSpent" });
});

test("token: a bad key is ignored and logged, and the other keys are used", () => {
  const { gate, keys, logged } = gateOf();
  const other = generateKeyPairSync("x25519").publicKey.export({ type: "spki", format: "pem" }).toString();
  keys.setKeys({ bad: "-----BEGIN PUBLIC KEY-----\njunk\n-----END PUBLIC KEY-----\n", other, k: PEM });
  expect(logged).toEqual(["keyRefused bad", "keyRefused other"]);
  expect(gate.admit(tokenOf())).toMatchObject({ leftBytes: 1000 });
});
