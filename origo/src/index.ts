/** Origo's public door: the message schemas. The server itself is a process (main.ts), not a library. */
export * from "./schema";
