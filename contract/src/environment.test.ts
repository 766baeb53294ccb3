import { doubtfulValues, misspeltVariables, oddValue } from "./environment";

const KNOWN = ["HOST", "PORT", "DATA_DIR", "RETENTION_DAYS", "ALLOW_HOSTS", "ORIGO_URL", "ORIGO_CODE", "PLACE"];

test.each([
  ["RETENTION_DAY", "RETENTION_DAYS"],
  ["ALLOW_HOST", "ALLOW_HOSTS"],
  ["RETENTOIN_DAYS", "RETENTION_DAYS"],
  ["retention_days", "RETENTION_DAYS"],
  ["DATADIR", "DATA_DIR"],
  ["ORIGO_URI", "ORIGO_URL"],
  ["Retention.Days", "RETENTION_DAYS"],
  ["allowHosts", "ALLOW_HOSTS"],
])("environment: %s is a near miss of %s", (name, near) => {
  expect(misspeltVariables({ [name]: "x" }, KNOWN)).toEqual([
    `${name} is not a variable of this program: did you mean ${near}?`,
  ]);
});

test.each([
  ["ORIGO_PORT", "PORT"],
  ["origo_data_dir", "DATA_DIR"],
  ["ORIGO_DATADIR", "DATA_DIR"],
])("environment: %s is %s with a prefix", (name, near) => {
  expect(misspeltVariables({ [name]: "x" }, KNOWN, ["ORIGO_"])).toEqual([
    `${name} is not a variable of this program: did you mean ${near}?`,
  ]);
});

test.each([
  ["export DATA_DIR", '"export DATA_DIR"'],
  ["DATA_DIR ", '"DATA_DIR "'],
  ["\uFEFFDATA_DIR", '"\\ufeffDATA_DIR"'],
  [" data_dir\t", '" data_dir\\t"'],
])("environment: the name %j is shown with all its characters, and the one that it hides is named", (name, seen) => {
  expect(misspeltVariables({ [name]: "x" }, KNOWN)).toEqual([
    `${seen} is not a variable of this program: did you mean DATA_DIR?`,
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
  ["/data # the folder", "must not have a comment after it"],
  ["DATA_DIR=/data", "must not begin with its own name"],
  ["~/data", "must be written out: nothing replaces ~ in it"],
  ["$HOME/data", "must be written out: nothing replaces $HOME in it"],
  ["${home}/data", "must be written out: nothing replaces ${home} in it"],
  ["/srv/$PLACE", "must be written out: nothing replaces $PLACE in it"],
  ["x$y/$HOST", "must be written out: nothing replaces $HOST in it"],
  ["/srv/${NAME}/data", "must be written out: nothing replaces ${NAME} in it"],
])("environment: the value %j is refused", (value, fault) => {
  expect(oddValue({ HOME: "' '", home: "/", DATA_DIR: value }, KNOWN)).toEqual({ name: "DATA_DIR", fault });
});

test.each([
  "/my data/it's",
  "/data #3",
  "/a=b",
  "PLACE=x",
  "/a$b",
  "/a$HOMES",
  "a~/b",
  "~data",
  "$2b$12$abc",
  "$$",
  "${}",
  "${HOME",
])("environment: the value %j, which has odd characters inside, is taken", (value) => {
  expect(oddValue({ DATA_DIR: value, PLACE: "", PORT: "1", X: " " }, KNOWN)).toBeUndefined();
});

const WORD = "the value of ORIGO_CODE has $ before a word, which is part of the value: nothing replaces it";

test.each([
  ["=Vz8", ["the value of ORIGO_CODE begins with =, which is part of the value"]],
  ["$kT9!", [WORD]],
  ["$HOMEs", [WORD]],
  ["$h", [WORD]],
  ["x${kT}", [WORD]],
  ["x$kT9", []],
  ["$2b$12$abc", []],
  ["$$a", []],
  ["$!", []],
  ["a=", []],
])("environment: the secret %j may come from a generator, so it is taken", (value, warnings) => {
  const env = { HOME: "/", PLACE: "1,2", ORIGO_CODE: value };
  expect(oddValue(env, KNOWN)).toBeUndefined();
  expect(doubtfulValues(env, KNOWN)).toEqual(warnings);
});
