/** The statuses with which the command line ends, and the error that carries one. */

export const STATUS = { worked: 0, failed: 1, usage: 2 } as const;

/** Ends the command with this status. A message becomes a sentence on standard error. */
export class Exit extends Error {
  override readonly name = "Exit";
  constructor(
    readonly status: number,
    message = "",
  ) {
    super(message);
  }
}

/** The command line is wrong. */
export class UsageError extends Exit {
  constructor(message: string) {
    super(STATUS.usage, message);
  }
}
