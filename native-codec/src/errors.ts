/** Turns the binding library's own out-of-memory error (`std::bad_alloc`) into a CodecError. */
import { CodecError } from "@tributary/protocol";

export function withTypedErrors<T>(call: () => T): T {
  try {
    return call();
  } catch (error) {
    if (error instanceof Error && error.message === "std::bad_alloc")
      throw new CodecError("memoryBytes", 0, 0, "out of memory");
    throw error;
  }
}
