import type { Command } from "commander";
import { UsageError } from "./exit";
import { getCommand } from "./get";
import { jobsOf, type GetWords } from "./jobs";
import { proxyOptionsOf } from "./options";
import { plainRange } from "./ranges";
import { makeProgram } from "./program";

/** Parses words as `get` does, and fetches nothing. */
function parse(...words: string[]): { urls: string[]; words: GetWords } {
  let parsed: { urls: string[]; words: GetWords } | undefined;
  const program = makeProgram();
  const get = program.commands.find((command) => command.name() === "get")!;
  get.action((urls: string[], given: GetWords) => void (parsed = { urls, words: given }));
  program.parse(["get", ...words], { from: "user" });
  return parsed!;
}

const jobs = (...words: string[]) => {
  const parsed = parse(...words);
  return jobsOf(parsed.urls, parsed.words).map(({ url, file }) => [url, file]);
};

describe("args", () => {
  test("args: get takes URLs and its options", () => {
    const { urls, words } = parse(
      ...["http://o/f", "--range", "0-99", "--mode", "direct", "--connections", "2", "--origo", "http://g"],
      ...["--output", "f", "--json", "--no-fallback", "--transport", "webrtc", "--generation-size", "32"],
      ...["--symbol-bytes", "500", "--window", "64", "--comment", "x"],
    );
    expect(urls).toEqual(["http://o/f"]);
    expect(words).toMatchObject({ range: [{ start: 0, end: 99 }], origo: "http://g", output: ["f"], json: true });
    expect(words.transport).toBe("webrtc");
    expect(proxyOptionsOf(words)).toEqual({
      mode: "direct",
      connections: 2,
      allowFallback: false,
      generationSize: 32,
      symbolBytes: 500,
      windowPackets: 64,
      comment: "x",
    });
    expect(proxyOptionsOf(parse("http://o/f").words)).toEqual({ allowFallback: true });
    expect(parse("http://o/f").words).toMatchObject({ origo: "http://127.0.0.1:7600", transport: "auto" });
  });

  test("args: ranges to the end, of the last bytes, and several", () => {
    const rangeOf = (text: string) => parse("http://o/f", "-r", text).words.range!;
    const toEnd = { start: 5, end: 2 ** 48 - 1 };
    expect(rangeOf("5-")).toEqual([toEnd]);
    expect(rangeOf("-500")).toEqual([{ lastBytes: 500 }]);
    expect(rangeOf("0-9, 20-29,-1")).toEqual([{ start: 0, end: 9 }, { start: 20, end: 29 }, { lastBytes: 1 }]);
    expect(plainRange(rangeOf("5-"))).toEqual(toEnd);
    expect(["-500", "0-9,20-29"].map((text) => plainRange(rangeOf(text)))).toEqual([undefined, undefined]);
  });

  test.each([
    [["http://o/a/f.mp4", "-O"], [["http://o/a/f.mp4", "f.mp4"]]],
    [["http://o/a%20b", "-O", "--output-dir", "d"], [["http://o/a%20b", "d/a b"]]],
    [
      ["http://o/1", "http://o/2", "-o", "a", "-o", "-"],
      [
        ["http://o/1", "a"],
        ["http://o/2", "-"],
      ],
    ],
    [
      ["http://o/1/x.ts", "http://o/2/x.ts", "-O"],
      [
        ["http://o/1/x.ts", "x.ts"],
        ["http://o/2/x.ts", "x.1.ts"],
      ],
    ],
    [["http://o/f"], [["http://o/f", "-"]]],
    [["http://o/f", "--json"], [["http://o/f", undefined]]],
  ])("args: %j writes to the right files", (words, expected) => {
    expect(jobs(...words)).toEqual(expected);
  });

  test.each([
    [[], /at least one URL: got none/],
    [["a", "--range", "5"], /--range <A-B>' argument '5' is invalid/],
    [["a", "--range", "9-3"], /argument '9-3' is invalid/],
    [["a", "--range", "-0"], /argument '-0' is invalid/],
    [["a", "--range", "0-9,"], /argument '0-9,' is invalid/],
    [["a", "--range", "0-9,20-29", "--continue", "-o", "f"], /--continue goes on with one range/],
    [["a", "--connections", "four"], /argument 'four' is invalid/],
    [["a", "--limit-rate", "0"], /argument '0' is invalid/],
    [["a", "--checksum", "sha-256=12"], /sha-256 has 64 hexadecimal digits: got 2/],
    [["a", "--checksum", "crc=12"], /argument 'crc=12' is invalid/],
    [["a", "--speed", "9"], /--speed/],
    [["a", "--mode"], /mode/],
    [["a", "--mode", "warp"], /warp.*direct/],
    [["a", "-o", ""], /--output is empty/],
    [["a", "b", "-o", "f"], /got 1 for 2 URLs/],
    [["a", "-O", "-o", "f"], /leave out --remote-name/],
    [["a", "--json", "-o", "-"], /both need standard output/],
    [["a", "--continue", "-J"], /must know the name before/],
    [["a", "b", "--checksum", `md5=${"0".repeat(32)}`], /--checksum takes one URL: got 2/],
  ])("args: get %j is a usage error", (words, message) => {
    expect(() => jobs(...words)).toThrow(message);
  });

  test("args: a terminal gets no bytes unasked", () => {
    const { isTTY } = process.stdout;
    process.stdout.isTTY = true;
    try {
      expect(() => jobs("http://o/f")).toThrow(UsageError);
      expect(jobs("http://o/f", "-o", "-")).toHaveLength(1);
    } finally {
      process.stdout.isTTY = isTTY;
    }
  });

  test("args: every option says what it does", () => {
    const commands: Command[] = [getCommand(), ...makeProgram().commands.filter(({ options }) => options.length > 0)];
    for (const { options } of commands)
      for (const { flags, description } of options) expect([flags, description]).not.toContain("");
  });
});
