/** Cold starts for HTTP: closes the connections that Node's `fetch` keeps. */

type Dispatcher = { constructor: new () => Dispatcher; destroy(): Promise<void> };
const DISPATCHER = Symbol.for("undici.globalDispatcher.1");

export async function dropConnections(): Promise<void> {
  const holder = globalThis as unknown as Record<symbol, Dispatcher | undefined>;
  const old = holder[DISPATCHER];
  if (!old) return;
  holder[DISPATCHER] = new old.constructor();
  await old.destroy();
}
