/**
 * Macrotasks in a browser, page or worker: a message port makes ones that a hidden document's timers would hold back.
 */

export function createDefer(): (task: () => void) => void {
  const { port1, port2 } = new MessageChannel();
  const tasks: (() => void)[] = [];
  port1.onmessage = () => tasks.shift()?.();
  return (task) => {
    tasks.push(task);
    port2.postMessage(null);
  };
}
