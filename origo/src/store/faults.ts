/** Faults: errors of the store that an answer names. A query that is wrong is answered with 400 and names its field. */
export class QueryFault extends Error {
  constructor(
    readonly field: string,
    message: string,
  ) {
    super(`${field}: ${message}`);
  }
}

/** Whether the database could not write for want of space, by its words or its code (PostgreSQL: disk_full). */
export const isDiskFull = ({ message, code }: Error & { code?: unknown }): boolean =>
  code === "53100" || /No space left|Disk quota exceeded/.test(message);

export const faultAt = (field: string, message: string): QueryFault => new QueryFault(field, message);
