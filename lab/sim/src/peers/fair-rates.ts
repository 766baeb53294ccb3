/**
 * Max-min fair rates of flows that share uplinks and downlinks (Bertsekas, Gallager: Data Networks, section 6.5.2):
 * the resource with the least to give to each of its flows fixes their rates, again and again.
 */
import { EventQueue } from "../events";

export interface Flows {
  /** By flow: its uplink and its downlink, as numbers of resources. */
  readonly up: Int32Array;
  readonly down: Int32Array;
  /** By resource: its flows, and its bytes a second. */
  readonly flowsOf: readonly Int32Array[];
  readonly capacity: Float64Array;
}

/** Writes the rate of each busy flow, and 0 for the others. */
export function fairRates({ up, down, flowsOf, capacity }: Flows, isBusy: Uint8Array, rates: Float64Array): void {
  const left = Float64Array.from(capacity);
  const open = new Int32Array(capacity.length);
  const isOpen = Uint8Array.from(isBusy);
  rates.fill(0);
  for (let flow = 0; flow < isBusy.length; flow++) {
    if (!isBusy[flow]) continue;
    open[up[flow]!]!++;
    open[down[flow]!]!++;
  }
  // The clock of the queue is the share that is handed out.
  const queue = new EventQueue();
  const fix = queue.register((resource) => {
    if (open[resource] === 0) return;
    const share = left[resource]! / open[resource]!;
    // It has grown since it was noted.
    if (share > queue.nowMs * (1 + 1e-9)) return queue.schedule(share, fix, resource);
    for (const flow of flowsOf[resource]!) {
      if (!isOpen[flow]) continue;
      isOpen[flow] = 0;
      rates[flow] = share;
      for (const other of [up[flow]!, down[flow]!]) {
        left[other] = Math.max(0, left[other]! - share);
        open[other]!--;
      }
    }
  });
  for (let resource = 0; resource < capacity.length; resource++)
    if (open[resource]! > 0) queue.schedule(left[resource]! / open[resource]!, fix, resource);
  while (queue.step(Infinity));
}
