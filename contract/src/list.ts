/**
 * List: an array schema that stops at the first item at fault, and does not look at the items of an array that is too
 * long. z.array looks at each item and keeps each fault, so a message of a million wrong items takes gigabytes.
 */
import { z } from "zod";

class List<Item extends z.ZodTypeAny> extends z.ZodArray<Item> {
  override _parse(input: z.ParseInput): z.ParseReturnType<this["_output"]> {
    const { status, ctx } = this._processInputParams(input);
    if (!Array.isArray(ctx.data)) return super._parse(input);
    const items = ctx.data as unknown[];
    const { minLength, maxLength, type } = this._def;
    const [least, most] = [minLength?.value ?? 0, maxLength?.value ?? Infinity];
    if (items.length > most || items.length < least) {
      const isLong = items.length > most;
      const bound = { type: "array", inclusive: true, exact: false } as const;
      z.addIssueToContext(
        ctx,
        isLong ? { code: "too_big", maximum: most, ...bound } : { code: "too_small", minimum: least, ...bound },
      );
      return z.INVALID;
    }
    const values: unknown[] = [];
    for (const [index, data] of items.entries()) {
      const read = type._parseSync({ data, path: [...ctx.path, index], parent: ctx });
      if (read.status === "aborted") return z.INVALID;
      if (read.status === "dirty") status.dirty();
      values.push(read.value);
      if (read.status === "dirty") break;
    }
    return { status: status.value, value: values as this["_output"] };
  }
}

/** From `least` to `most` items. */
export const listOf = <Item extends z.ZodTypeAny>(item: Item, most: number, least = 0): z.ZodArray<Item> => {
  const { _def } = z.array(item).min(least).max(most);
  return new List<Item>(_def);
};
