/**
 * Shell completion from the table of commands. `tributary completion bash` prints a script for the shell, which then
 * calls `tributary completion-server -- WORDS` for the words that may follow.
 */
import { getCompletionScript, getShellFromEnv, log, logFiles, parseEnv, type CompletionItem } from "@pnpm/tabtab";
import { Argument, Command, type Option } from "commander";
import { print } from "./terminal";

const SHELLS = ["bash", "zsh", "fish"] as const;
type Shell = (typeof SHELLS)[number];

/** Placeholders of values that are names of files. */
const FILE_VALUE = /<(file|folder)>/;

export function completionCommand(): Command {
  return new Command("completion")
    .description("print the script of shell completion, e.g.: source <(tributary completion bash)")
    .addArgument(new Argument("<shell>", "your shell").choices(SHELLS))
    .action(async (shell: Shell) => {
      print(`${await getCompletionScript({ name: "tributary", completer: "tributary", shell })}\n`);
    });
}

/** The command that the script calls. Help does not show it. */
export function serverCommand(program: Command): Command {
  return new Command("completion-server").argument("[words...]").action(([name = "", ...words]: string[]) => {
    const shell = getShellFromEnv(process.env);
    const { words: index, point } = parseEnv(process.env);
    // fish leaves out an empty last word.
    if (shell === "fish" && point > [name, ...words].join(" ").length) words.push("");
    const suggested = suggest(program, shell === "fish" ? words : words.slice(0, index));
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
