import { execute, CLI, makeFolder } from "../../test/command";
import { suggest } from "./completion";
import { makeProgram } from "./program";

const names = (...words: string[]): string[] | string => {
  const suggested = suggest(makeProgram(), words);
  return suggested === "files" ? suggested : suggested.map(({ name }) => name);
};

describe("completion", () => {
  test("completion: commands, options, choices and files come from the table of commands", () => {
    expect(names("")).toEqual(expect.arrayContaining(["get", "proxies", "completion", "help"]));
    expect(names("")).not.toContain("completion-server");
    expect(names("get", "--re")).toEqual(expect.arrayContaining(["--remote-time", "--output"]));
    expect(names("get", "http://o/", "--mode", "")).toContain("coded-mutp");
    expect(names("get", "-o", "")).toBe("files");
    expect(names("get", "--range", "")).toEqual([]);
    expect(names("completion", "")).toEqual(["bash", "zsh", "fish"]);
    expect(names("-")).toContain("--version");
  });

  test("completion: bash completes", async () => {
    const folder = makeFolder();
    const script =
      `tributary() { "${process.execPath}" "${CLI}" "$@"; }; source <(tributary completion bash); ` +
      'COMP_WORDS=(tributary get --mode cod); COMP_CWORD=3; COMP_LINE="tributary get --mode cod"; COMP_POINT=24; ' +
      'complete -p tributary >&2; _tributary_completion; echo "${COMPREPLY[@]}"';
    const { stdout, stderr } = await execute("bash", ["-c", script], { cwd: folder.path });
    folder.remove();
    expect(stderr).toContain("-o default");
    expect(stdout.toString().trim()).toBe("coded-mutp coded");
  });
});
