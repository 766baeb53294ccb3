/**
 * Macrotasks in a browser's page or worker. They use a message port, because a browser delays the timers of a hidden
 * page.
 */

/** Returns a function that runs each task soon, in its own macrotask. */
export function createDefer(): (task: () => void) => void {
  const { port1, port2 } = new MessageChannel();
  const tasks: (() => void)[] = [];
  port1.onmessage = () => tasks.shift()?.();
  return (task) => {
    tasks.push(task);
    port2.postMessage(null);
  };
}
