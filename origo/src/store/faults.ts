/** A question that cannot be answered as it was asked: for a 400, with the place in the request. */
export class QueryFault extends Error {
  constructor(
    readonly field: string,
    message: string,
  ) {
    super(`${field}: ${message}`);
  }
}

export const faultAt = (field: string, message: string): QueryFault => new QueryFault(field, message);
