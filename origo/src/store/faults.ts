/** Faults: a query that is wrong. It is answered with 400 and names the field of the request. */
export class QueryFault extends Error {
  constructor(
    readonly field: string,
    message: string,
  ) {
    super(`${field}: ${message}`);
  }
}

export const faultAt = (field: string, message: string): QueryFault => new QueryFault(field, message);
