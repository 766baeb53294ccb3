import { misspeltVariables, oddValue } from "./environment";

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

test.each([
  ["ORIGO_PORT", "PORT"],
  ["ORIGO_DATADIR", "DATA_DIR"],
])("environment: %s is %s with a prefix", (name, near) => {
  expect(misspeltVariables({ [name]: "x" }, KNOWN, ["ORIGO_"])).toEqual([
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

test.each([
  ['"/data"', "must not have quotes around it"],
  ["'/data'\r", "must not have quotes around it"],
  ["/data\r", "must not have spaces or line ends at its ends"],
  [" /data", "must not have spaces or line ends at its ends"],
  [" ", "must not have spaces or line ends at its ends"],
  ["/da\tta", "must not have control characters"],
])("environment: the value %j is refused", (value, fault) => {
  expect(oddValue({ HOME: "' '", DATA_DIR: value }, KNOWN)).toEqual({ name: "DATA_DIR", fault });
});

test("environment: values with quotes or spaces inside are taken", () => {
  expect(oddValue({ DATA_DIR: "/my data/it's", PLACE: "", PORT: "1", X: " " }, KNOWN)).toBeUndefined();
});
