import { misspeltVariables } from "./environment";

const KNOWN = ["HOST", "PORT", "DATA_DIR", "RETENTION_DAYS", "ALLOW_HOSTS", "ORIGO_URL", "ORIGO_CODE", "PLACE"];

test.each([
  ["RETENTION_DAY", "RETENTION_DAYS"],
  ["ALLOW_HOST", "ALLOW_HOSTS"],
  ["RETENTOIN_DAYS", "RETENTION_DAYS"],
  ["retention_days", "RETENTION_DAYS"],
  ["DATADIR", "DATA_DIR"],
  ["ORIGO_URI", "ORIGO_URL"],
])("environment: %s is a near miss of %s", (name, near) => {
  expect(misspeltVariables({ [name]: "x" }, KNOWN)).toEqual([
    `${name} is not a variable of this program: did you mean ${near}?`,
  ]);
});

test("environment: a name with a known prefix has no effect, and the operator is told", () => {
  expect(misspeltVariables({ ORIGO_SECRET: "abc" }, KNOWN, ["ORIGO_"])).toEqual([
    "ORIGO_SECRET is not a variable of this program, so it has no effect",
  ]);
});

test("environment: known, empty and foreign variables pass", () => {
  const env = {
    HOME: "/",
    HOSTNAME: "a",
    PATH: "/bin",
    SHLVL: "1",
    POST: "x",
    RETENTION_DAYS: "3",
    ALLOW_HOST: "",
    PWD: "/",
  };
  expect(misspeltVariables({ ...env, LC_ALL: "C", npm_config_cache: "x", DATABASE: "x" }, KNOWN, ["ORIGO_"])).toEqual(
    [],
  );
});
