/**
 * Late primordials: what only the scripts that come into a page later use of the language (primordials.ts). Without it
 * the page script stays small.
 */
import { keptOf } from "./kept";
import { add, apply, firstOf, getterOf, globalOf, methodOf, staticOf } from "./primordials";

export const nowOfDate = staticOf("Date", "now") as typeof Date.now;
export const min = staticOf("Math", "min") as typeof Math.min;
export const max = staticOf("Math", "max") as typeof Math.max;
export const round = staticOf("Math", "round") as typeof Math.round;

export const OwnError = globalOf("Error");
export const OwnTypeError = globalOf("TypeError");

/** In the order of their letters. */
export function sorted(names: readonly string[]): string[] {
  const list: string[] = [];
  firstOf(names, (name) => {
    let at = list.length;
    for (add(list, name); at > 0 && list[at - 1]! > name; at--) list[at] = list[at - 1]!;
    list[at] = name;
  });
  return list;
}

export const hostAndPort = getterOf("URL", "host");

const OwnDate = globalOf("Date");
const inGmt = methodOf<Date, [], string>("Date", "toUTCString");
/** The present, as HTTP writes it. */
export const dateText = (): string => inGmt(new OwnDate());

type Bytes = Uint8Array<ArrayBuffer>;
export const OwnBytes = globalOf("Uint8Array");
const bufferOf = keptOf("TypedArray")!.members.buffer!.get!;
const offsetOf = keptOf("TypedArray")!.members.byteOffset!.get!;
const lengthOf = keptOf("TypedArray")!.members.length!.get!;
const put = methodOf<Bytes, [Uint8Array, number], void>("TypedArray", "set");

/** `slice` would look for `constructor`. */
export const copyOfBuffer = (of: ArrayBuffer): ArrayBuffer => bytes.buffer(bytes.copy(new OwnBytes(of)));

/** Bytes. Methods that make an array would look for `constructor`. */
export const bytes = {
  buffer: (of: Bytes): ArrayBuffer => apply(bufferOf, of, []) as ArrayBuffer,
  offset: (of: Bytes): number => apply(offsetOf, of, []) as number,
  count: (of: Uint8Array): number => apply(lengthOf, of, []) as number,
  /** From `from` on, at most `count`, in the same buffer. */
  part: (of: Bytes, from: number, count = Infinity): Bytes => {
    const start = min(from, bytes.count(of));
    return new OwnBytes(bytes.buffer(of), bytes.offset(of) + start, min(count, bytes.count(of) - start));
  },
  copy: (of: Bytes): Bytes => {
    const copy = new OwnBytes(bytes.count(of));
    put(copy, of, 0);
    return copy;
  },
  put,
};
