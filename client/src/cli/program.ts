/**
 * The table of commands, and how one of them runs. A command is a `Command` of commander: its arguments and options
 * make the parser, the help and the shell completion. It ends well, or it throws an `Exit`.
 */
import { Command, CommanderError } from "commander";
import { messageOf, RequestError } from "../errors";
import { CLIENT_VERSION } from "../settings";
import { completionCommand, serverCommand } from "./completion";
import { Exit, STATUS } from "./exit";
import { gatewayCommand } from "./gateway";
import { getCommand } from "./get";
import { proxiesCommand } from "./proxies";
import { listCommand, publishCommand, unpublishCommand, verifyCommand } from "./publish/commands";
import { stopped } from "./signals";
import { swarmCommand } from "./swarm";
import { print, say } from "./terminal";

const COMMANDS: readonly (() => Command)[] = [
  getCommand,
  gatewayCommand,
  proxiesCommand,
  publishCommand,
  listCommand,
  unpublishCommand,
  verifyCommand,
  swarmCommand,
  completionCommand,
];

const STATUSES = `
Exit status: 0 on success, 1 on failure (also for an HTTP status other than 2xx), 2 for a wrong command line, 128 and
the signal's number when a signal ended it.
`;

export function makeProgram(): Command {
  const program = new Command("tributary")
    .description("Downloads through several proxies at once.")
    .version(`tributary ${CLIENT_VERSION}`, "-V, --version", "show the version")
    .helpOption("-h, --help", "show this text")
    .helpCommand("help [command]", "show the help of a command")
    .configureOutput({ writeOut: print, writeErr: say, outputError: () => undefined })
    .configureHelp({ showGlobalOptions: false })
    .addHelpText("after", STATUSES)
    .exitOverride();
  for (const make of COMMANDS) program.addCommand(withParents(program, make()));
  program.addCommand(withParents(program, serverCommand(program)), { hidden: true });
  return program;
}

/** Commands that are made apart from the program take its output and its way to end. */
function withParents(program: Command, command: Command): Command {
  return command.copyInheritedSettings(program).addHelpText("after", command.name() === "get" ? STATUSES : "");
}

/** Runs the command line and resolves with the exit status. */
export async function run(words: readonly string[]): Promise<number> {
  const program = makeProgram();
  try {
    if (words.length === 0) throw new Exit(STATUS.usage, "Name a command.");
    await program.parseAsync(words, { from: "user" });
  } catch (error) {
    if (!stopped.aborted) return statusOf(error);
  }
  return stopped.aborted ? (stopped.reason as Exit).status : STATUS.worked;
}

/** Says what went wrong. */
function statusOf(error: unknown): number {
  if (error instanceof CommanderError) {
    if (error.exitCode === 0) return STATUS.worked;
    return complain(error.message.replace(/^error: /, "").replace(/[^.!?)]$/, "$&."), STATUS.usage);
  }
  if (error instanceof RequestError) return complain(error.message, STATUS.usage);
  if (error instanceof Exit) return complain(error.message, error.status);
  return complain(messageOf(error), STATUS.failed);
}

function complain(message: string, status: number): number {
  if (message !== "") say(`tributary: ${message}${status === STATUS.usage ? " Try --help." : ""}\n`);
  return status;
}
