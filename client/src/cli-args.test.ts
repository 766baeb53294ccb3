import { parseCommand } from "./cli-args";

describe("cli-args", () => {
  test("cli-args: get takes a URL and its options", () => {
    const args = [
      "get",
      "http://o/f",
      "--range",
      "0-99",
      "--mode",
      "direct",
      "--connections",
      "2",
      "--origo",
      "http://g",
      "--output",
      "f",
      "--json",
      "--no-fallback",
      "--transport",
      "webrtc",
    ];
    expect(
      parseCommand([...args, "--generation-size", "32", "--symbol-bytes", "500", "--window", "64", "--comment", "x"]),
    ).toEqual({
      command: "get",
      url: "http://o/f",
      origoUrl: "http://g",
      output: "f",
      json: true,
      transport: "webrtc",
      options: {
        mode: "direct",
        range: { start: 0, end: 99 },
        connections: 2,
        allowFallback: false,
        generationSize: 32,
        symbolBytes: 500,
        windowPackets: 64,
        comment: "x",
      },
    });
    expect(parseCommand(["get", "http://o/f"])).toMatchObject({
      origoUrl: "http://127.0.0.1:7600",
      options: { allowFallback: true },
      transport: "auto",
      json: false,
    });
  });

  test.each([
    [["--help"], "help"],
    [["get", "-h"], "help"],
    [["help"], "help"],
    [["proxies"], "proxies"],
  ])("cli-args: %j is %s", (args, command) => {
    expect(parseCommand(args)).toMatchObject({ command });
  });

  test.each([
    [[], /The command is not known: got nothing, allowed: get, proxies, help/],
    [["put", "x"], /got "put"/],
    [["get"], /get takes one URL: got 0/],
    [["get", "a", "b"], /get takes one URL: got 2/],
    [["get", "a", "--range", "5"], /--range is not valid: got "5"/],
    [["get", "a", "--range", "5-"], /--range is not valid: got "5-"/],
    [["get", "a", "--connections", "four"], /--connections is not valid: got "four"/],
    [["get", "a", "--speed", "9"], /--speed/],
    [["get", "a", "--mode"], /mode/],
    [["proxies", "x"], /proxies takes no argument: got "x"/],
  ])("cli-args: %j is a usage error", (args, message) => {
    expect(parseCommand(args)).toEqual({ command: "usageError", message: expect.stringMatching(message) });
  });
});
