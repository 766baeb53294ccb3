import { defaultsOf, nameOf, ORIGO_SETTINGS, settingFault, SETTINGS, type SettingKey } from "./settings";

test("settings: each row has a reader, a default that it allows, and a sentence of help", () => {
  for (const [key, row] of Object.entries(SETTINGS)) {
    expect(key).toMatch(/^(client|proxy|origo)\.[a-z]\w*$/);
    expect([key, settingFault(row, row.default)]).toEqual([key, undefined]);
    expect([key, row.help]).toEqual([key, expect.stringMatching(/^[A-Z].{10,}\.$/)]);
    if ("start" in row) expect([key, settingFault(row, row.start.default)]).toEqual([key, undefined]);
    if ("zero" in row) expect([key, row.min]).toEqual([key, 0]);
  }
});

test("settings: names are unique for each reader, and defaults are found by name", () => {
  expect(nameOf("origo.nearKm")).toBe("nearKm");
  expect(defaultsOf(ORIGO_SETTINGS)).toMatchObject({ nearKm: 3000, selection: "random" });
  expect(Object.keys(defaultsOf(ORIGO_SETTINGS))).toHaveLength(Object.keys(ORIGO_SETTINGS).length);
});

test("settings: a key that is not in the table is a compile error", () => {
  const known: SettingKey = "client.mode";
  // @ts-expect-error There is no such setting.
  const unknown: SettingKey = "client.nothing";
  expect([known in SETTINGS, unknown in SETTINGS]).toEqual([true, false]);
});

test.each([
  ["client.connections", 0, "must be at least 1, got 0", { got: 0, limit: 1 }],
  ["client.connections", 33, "must be at most 32, got 33", { got: 33, limit: 32 }],
  ["client.connections", 1.5, "must be a whole number, got 1.5", undefined],
  ["client.connections", "4", 'must be a whole number, got "4"', undefined],
  ["client.connections", NaN, "must be a whole number, got NaN", undefined],
  ["client.cutBytes", 2 ** 26, "must be at most 33,554,432, got 67,108,864", { got: 2 ** 26, limit: 2 ** 25 }],
  ["client.allowFallback", "yes", 'must be true or false, got "yes"', undefined],
  ["origo.selection", "far", 'must be one of random, near, least-loaded, operators, got "far"', undefined],
] as const)("settings: %s = %j is refused", (key, value, message, numbers) => {
  expect(settingFault(SETTINGS[key], value)).toEqual(numbers ? { message, numbers } : { message });
});
