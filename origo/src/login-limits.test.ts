import { LoginLimits, type Attempt } from "./login-limits";
import { SETTINGS, type SettingKey } from "@tributary/contract/settings";

const OWNER = { name: "ada", address: "203.0.113.9", device: undefined };
const STRANGER = { name: "ada", address: "198.51.100.66", device: undefined };
const limits = (): LoginLimits =>
  new LoginLimits({ value: ((key: SettingKey) => SETTINGS[key].default) as never }, "key of this Origo");

function guess(at: LoginLimits, times: number, attempt: (index: number) => Attempt): number {
  let taken = 0;
  for (let index = 0; index < times; index++) if (at.begin(attempt(index), 0) === 0) taken++;
  return taken;
}

test("login limits: a stranger's guesses at a name make the stranger wait, and not the owner", () => {
  const at = limits();
  expect(guess(at, 30, () => STRANGER)).toBe(10);
  expect(at.begin(STRANGER, 1000)).toBe(299_000);
  expect(at.begin(OWNER, 1000)).toBe(0);
  expect(at.begin(STRANGER, 300_000)).toBe(0);
});

test("login limits: when many addresses guess at one name, each gets two attempts, and so does the owner", () => {
  const at = limits();
  const everywhere = (index: number): Attempt => ({ ...STRANGER, address: `198.51.${index % 256}.1` });
  expect(guess(at, 100, everywhere)).toBe(100);
  const elsewhere = { ...STRANGER, address: "192.0.2.1" };
  expect(guess(at, 5, () => elsewhere)).toBe(2);
  expect(guess(at, 5, () => OWNER)).toBe(2);
});

test("login limits: a browser in which the owner signed in before gets in beside a stranger at its own address", () => {
  const at = limits();
  const behind = { ...OWNER, address: STRANGER.address, device: at.deviceCookie("ada") };
  for (let index = 0; index < 100; index++) at.begin({ ...STRANGER, name: `user ${index}` }, 0);
  expect(guess(at, 30, () => STRANGER)).toBe(0);
  expect(at.begin(behind, 0)).toBe(0);
  at.noteSuccess(behind, 0);
  expect(guess(at, 30, () => behind)).toBe(10);
});

test("login limits: a device cookie of another name, or a made-up one, counts as none", () => {
  const at = limits();
  guess(at, 30, () => STRANGER);
  for (const device of [at.deviceCookie("eve"), "id.signature", "", ".", at.deviceCookie("ada").replace(".", ".x")])
    expect(at.begin({ ...STRANGER, device }, 0)).toBeGreaterThan(0);
});

test("login limits: all addresses of an IPv6 network of 64 bits count as one", () => {
  const at = limits();
  expect(guess(at, 30, (index) => ({ ...STRANGER, address: `2001:db8:7:9::${index}` }))).toBe(10);
  expect(at.begin({ ...STRANGER, address: "2001:db8:7:a::1" }, 0)).toBe(0);
});

test("login limits: a user who signs in pays nothing, so many users behind one address can", () => {
  const at = limits();
  for (let index = 0; index < 200; index++) {
    const user = { ...OWNER, name: `user ${index}` };
    expect(at.begin(user, 0)).toBe(0);
    at.noteSuccess(user, 0);
  }
});
