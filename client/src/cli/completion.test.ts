import { readdirSync, writeFileSync } from "node:fs";
import path from "node:path";
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

  /** The folder has the command `tributary` and a file `film.mp4`. */
  async function inShell(shell: string, script: string): Promise<{ stdout: string; stderr: string; files: string[] }> {
    const folder = makeFolder();
    const command = path.join(folder.path, "tributary");
    writeFileSync(command, `#!/bin/sh\nexec "${process.execPath}" "${CLI}" "$@"\n`, { mode: 0o755 });
    writeFileSync(path.join(folder.path, "film.mp4"), "");
    const env = { PATH: `${folder.path}:${process.env["PATH"]}`, HOME: folder.path };
    const { stdout, stderr } = await execute(shell, ["-c", script], { cwd: folder.path, env });
    const files = readdirSync(folder.path).filter((name) => !name.startsWith("."));
    folder.remove();
    return { stdout: stdout.toString(), stderr, files };
  }

  test("completion: bash completes", async () => {
    const { stdout, stderr } = await inShell(
      "bash",
      "source <(tributary completion bash); " +
        'COMP_WORDS=(tributary get --mode cod); COMP_CWORD=3; COMP_LINE="tributary get --mode cod"; COMP_POINT=24; ' +
        'complete -p tributary >&2; _tributary_completion; echo "${COMPREPLY[@]}"',
    );
    expect(stderr).toContain("-o default");
    expect(stdout.trim()).toBe("coded-mutp coded");
  });

  test("completion: zsh completes at the key", async () => {
    // The prompt is written in two parts, so that its own echo is not taken for it.
    const { stdout } = await inShell(
      "zsh",
      "zmodload zsh/zpty; zpty z zsh -f -i; " +
        "zpty -w z 'autoload -Uz compinit; compinit -u -D; source <(tributary completion zsh); PS1=rea; PS1+=dy'; " +
        "zpty -r z out '*ready*'; " +
        "zpty -w -n z $'tributary get --mode spl\\t'; zpty -r z out '*split-http*'; " +
        "zpty -w -n z $' -o fil\\t'; zpty -r z out '*film.mp4*'; echo both",
    );
    expect(stdout.trim()).toBe("both");
  });

  test("completion: fish completes, and runs nothing of the words that are there", async () => {
    const { stdout, stderr, files } = await inShell(
      "fish",
      "tributary completion fish | source; complete -C 'tributary get -o fi'; " +
        "complete -C 'tributary get \"http://o/?a=1;touch pwned\" --mode cod'",
    );
    const names = stdout.split("\n").map((line) => line.split("\t")[0]);
    expect(names).toEqual(["film.mp4", "coded", "coded-mutp", ""]);
    expect(stderr).toBe("");
    expect(files.sort()).toEqual(["film.mp4", "tributary"]);
  });
});
