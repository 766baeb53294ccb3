/**
 * Shell completion from the table of commands. `tributary completion bash` prints a script for the shell, which then
 * calls `tributary completion-server -- WORDS` for the words that may follow.
 */
import { getCompletionScript, getShellFromEnv, log, logFiles, parseEnv, type CompletionItem } from "@pnpm/tabtab";
import { Argument, Command, type Option } from "commander";
import { print } from "./terminal";

const SHELLS = ["bash", "zsh", "fish"] as const;
type Shell = (typeof SHELLS)[number];

/**
 * The library's script for fish evaluates the words of the command line once more, and so it would run what follows a
 * semicolon in a quoted address.
 */
const FISH_SCRIPT = `function __tributary_complete
  set -l words (commandline -opc)
  set -l current (commandline -ct)
  set -l count (count $words)
  set -l answer (env COMP_CWORD=$count COMP_LINE= COMP_POINT=0 SHELL=fish \\
    tributary completion-server -- $words "$current")
  if test "$answer" = __tabtab_complete_files__
    __fish_complete_path "$current"
  else
    printf '%s\\n' $answer
  end
end
complete -c tributary -f -a '(__tributary_complete)'
`;

/** Placeholders of values that are names of files. */
const FILE_VALUE = /<(file|folder)>/;

export function completionCommand(): Command {
  return new Command("completion")
    .description("print the script of shell completion, e.g.: source <(tributary completion bash)")
    .addArgument(new Argument("<shell>", "your shell").choices(SHELLS))
    .action(async (shell: Shell) => {
      const script = { name: "tributary", completer: "tributary", shell };
      print(shell === "fish" ? FISH_SCRIPT : `${await getCompletionScript(script)}\n`);
    });
}

/** The command that the script calls. Help does not show it. */
export function serverCommand(program: Command): Command {
  return new Command("completion-server").argument("[words...]").action(([, ...words]: string[]) => {
    const shell = getShellFromEnv(process.env);
    const suggested = suggest(program, words.slice(0, parseEnv(process.env).words));
    if (suggested !== "files") log(suggested, shell);
    // bash completes names of files where nothing is suggested.
    else if (shell !== "bash") logFiles();
  });
}

/** What may follow. The last of the words is the one under the cursor. */
export function suggest(program: Command, words: readonly string[]): CompletionItem[] | "files" {
  const current = words.at(-1) ?? "";
  const help = program.createHelp();
  const named = program.commands.find((each) => each.name() === words.slice(0, -1).find((word) => /^\w/.test(word)));
  const command = named ?? program;
  const before = words.at(-2) ?? "";
  const option = command.options.find(({ short, long }) => before !== "" && [short, long].includes(before));
  if (option?.required) return valuesOf(option);
  if (current.startsWith("-"))
    return help
      .visibleOptions(command)
      .map(({ long, short, description }) => ({ name: long ?? short ?? "", description }));
  if (command === program)
    return help.visibleCommands(program).map((each) => ({ name: each.name(), description: each.description() }));
  return (command.registeredArguments[0]?.argChoices ?? []).map((name) => ({ name }));
}

function valuesOf({ argChoices, flags }: Option): CompletionItem[] | "files" {
  return FILE_VALUE.test(flags) ? "files" : (argChoices ?? []).map((name) => ({ name }));
}
