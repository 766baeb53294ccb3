import { configWarnings, parseConfig, withOptions } from "./config";

const faultsOf = (env: Record<string, string>) => {
  const parsed = parseConfig(env);
  return "faults" in parsed ? parsed.faults : [];
};

test("config: the defaults listen on loopback, allow nothing and limit no rate", () => {
  const parsed = parseConfig({ PATH: "/bin", ALLOW_HOSTS: "" });
  expect(parsed).toMatchObject({
    config: {
      HOST: "127.0.0.1",
      PORT: 0,
      UDP_PORT: 0,
      WEBTRANSPORT_PORT: 0,
      ALLOW_HOSTS: [],
      ALLOW_PRIVATE_HOSTS: [],
      RATE_BYTES_PER_SEC: 0,
      CACHE_BYTES: 268_435_456,
    },
  });
});

test("config: every variable is read", () => {
  const parsed = parseConfig({
    HOST: "localhost",
    PORT: "7050",
    UDP_PORT: "7051",
    PROXY_NAME: "p",
    ORIGO_URL: "http://o:1/",
    DATA_DIR: "/data",
    ORIGO_CODE: "c",
    ORIGO_CODE_FILE: "/run/code",
    ALLOW_ORIGINS: "https://player.example, http://127.0.0.1:7680",
    TRUSTED_HOPS: "1",
    PUBLIC_URL: "https://p.example/",
    PUBLIC_ADDRESS: "1.1.1.1",
    PUBLIC_UDP_PORT: "1",
    PUBLIC_WEBTRANSPORT_PORT: "2",
    WEBTRANSPORT_PORT: "off",
    UDP_PLAIN_PORT: "7052",
    PROBE_PUBLISHED: "host.docker.internal:7611-7642",
    ALLOW_HOSTS: "*, a.example:81",
    ALLOW_PRIVATE_HOSTS: "127.0.0.1:7680",
    RATE_BYTES_PER_SEC: "896000",
    CACHE_BYTES: "0",
    MAX_SESSIONS: "3",
    PLACE: "47.5,-19.05",
    OPERATOR: "us",
    REQUIRE_TOKEN: "1",
    LIBRARY_DIR: "/library",
    LIBRARY_BYTES: "5",
    CODER_BYTES: "1048576",
    CODES_ANEW: "1",
    TRIBUTARY_CODER: "both",
    TRIBUTARY_GPU: "stand-in",
  });
  expect(parsed).toEqual({
    config: {
      HOST: "127.0.0.1",
      PORT: 7050,
      UDP_PORT: 7051,
      PROXY_NAME: "p",
      ORIGO_URL: "http://o:1",
      DATA_DIR: "/data",
      ORIGO_CODE: "c",
      ORIGO_CODE_FILE: "/run/code",
      ALLOW_ORIGINS: ["https://player.example", "http://127.0.0.1:7680"],
      TRUSTED_HOPS: 1,
      PUBLIC_URL: "https://p.example",
      PUBLIC_ADDRESS: "1.1.1.1",
      PUBLIC_UDP_PORT: 1,
      PUBLIC_WEBTRANSPORT_PORT: 2,
      WEBTRANSPORT_PORT: "off",
      UDP_PLAIN_PORT: 7052,
      PROBE_PUBLISHED: { host: "host.docker.internal", first: 7611, last: 7642 },
      ALLOW_HOSTS: [{ host: "*" }, { host: "a.example", port: 81 }],
      ALLOW_PRIVATE_HOSTS: [{ host: "127.0.0.1", port: 7680 }],
      RATE_BYTES_PER_SEC: 896_000,
      CACHE_BYTES: 0,
      MAX_SESSIONS: 3,
      PLACE: { lat: 47.5, lon: -19.05 },
      OPERATOR: "us",
      REQUIRE_TOKEN: true,
      LIBRARY_DIR: "/library",
      LIBRARY_BYTES: 5,
      CODER_BYTES: 2 ** 20,
      CODES_ANEW: true,
      TRIBUTARY_CODER: "both",
      TRIBUTARY_GPU: "stand-in",
    },
  });
});

test.each([
  [{ PORT: "65536" }, /^PORT: must be a whole number from 0 to 65535; got "65536"$/],
  [{ PORT: "-1" }, /^PORT: /],
  [{ UDP_PORT: "x" }, /^UDP_PORT: .*got "x"$/],
  [{ WEBTRANSPORT_PORT: "on" }, /^WEBTRANSPORT_PORT: .*got "on"$/],
  [{ HOST: "example.com" }, /^HOST: must be an IP address; got "example.com"$/],
  [{ ORIGO_URL: "ftp://o", DATA_DIR: "d" }, /^ORIGO_URL: must be an http or https URL/],
  [{ ORIGO_URL: "http://o" }, /^DATA_DIR: must be set to a folder .* at ORIGO_URL knows it; got not set$/],
  [{ PUBLIC_ADDRESS: "me" }, /^PUBLIC_ADDRESS: must be an IP address/],
  [{ PUBLIC_UDP_PORT: "0" }, /^PUBLIC_UDP_PORT: must be a whole number from 1/],
  [{ PROBE_PUBLISHED: "h:2-1" }, /^PROBE_PUBLISHED: must be HOST:FIRST-LAST/],
  [{ PROBE_PUBLISHED: "h:1-1025" }, /^PROBE_PUBLISHED: /],
  [{ ALLOW_HOSTS: "a,http://b" }, /^ALLOW_HOSTS: .*"http:\/\/b" is not; got "a,http:\/\/b"$/],
  [{ ALLOW_PRIVATE_HOSTS: "*" }, /^ALLOW_PRIVATE_HOSTS: /],
  [{ ALLOW_ORIGINS: "https://player.example/" }, /^ALLOW_ORIGINS: must be a comma-separated list of origins/],
  [{ TRUSTED_HOPS: "-1" }, /^TRUSTED_HOPS: /],
  [{ RATE_BYTES_PER_SEC: "1e6" }, /^RATE_BYTES_PER_SEC: /],
  [{ PROXY_NAME: "x".repeat(65) }, /^PROXY_NAME: must be 1 to 64 characters/],
])("config: %j is refused by name, value and what is allowed", (env, expected) => {
  expect(faultsOf(env as Record<string, string>)).toEqual([expect.stringMatching(expected)]);
});

test("config: all faults are reported together", () => {
  expect(faultsOf({ PORT: "a", UDP_PORT: "b" })).toHaveLength(2);
  expect(faultsOf({ PORT: "a", ALLOW_HOST: "b" })[1]).toContain("did you mean ALLOW_HOSTS?");
});

test("config: a code that a generator may have made is taken with a warning, and the warning does not show it", () => {
  const env = { ORIGO_CODE: "$kT9!" };
  expect(parseConfig(env)).toMatchObject({ config: env });
  expect(configWarnings(env)).toEqual([expect.stringMatching(/^the value of ORIGO_CODE has \$ before a word[^!]*$/)]);
});

test("config: --coder counts more than the environment, and other options are faults", () => {
  expect(withOptions({ TRIBUTARY_CODER: "cpu" }, [])).toEqual({ TRIBUTARY_CODER: "cpu" });
  expect(withOptions({ TRIBUTARY_CODER: "cpu" }, ["--coder", "both"])).toEqual({ TRIBUTARY_CODER: "both" });
  expect(withOptions({ LIBRARY_DIR: "/a" }, ["--library", "/b"])).toEqual({ LIBRARY_DIR: "/b" });
  expect(withOptions({}, ["--library="])).toBe("--library needs a folder.");
  expect(withOptions({}, ["--coder=gpu"])).toEqual({ TRIBUTARY_CODER: "gpu" });
  for (const args of [["--coders=gpu"], ["--coder"], ["gpu"]])
    expect(withOptions({}, args)).toContain("The options are --coder auto|cpu|gpu|both and --library DIR.");
  for (const value of ["tpu", "(empty)"])
    expect(parseConfig({ TRIBUTARY_CODER: value })).toEqual({
      faults: [`TRIBUTARY_CODER: must be one of auto, cpu, gpu, both; got "${value}"`],
    });
});
