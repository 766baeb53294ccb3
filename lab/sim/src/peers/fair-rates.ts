/**
 * Max-min fair rates of flows that share uplinks and downlinks (Bertsekas, Gallager: Data Networks, section 6.5.2):
 * the resource with the least to give to each of its flows fixes their rates, again and again.
 */
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
  const heap = new ShareHeap();
  for (let resource = 0; resource < capacity.length; resource++)
    if (open[resource]! > 0) heap.push(left[resource]! / open[resource]!, resource);
  for (let next = heap.pop(); next; next = heap.pop()) {
    const { share, resource } = next;
    const now = left[resource]! / open[resource]!;
    if (open[resource] === 0) continue;
    // Its share has grown since it was noted.
    if (now > share * (1 + 1e-9)) {
      heap.push(now, resource);
      continue;
    }
    for (const flow of flowsOf[resource]!) {
      if (!isOpen[flow]) continue;
      isOpen[flow] = 0;
      rates[flow] = now;
      for (const other of [up[flow]!, down[flow]!]) {
        left[other] = Math.max(0, left[other]! - now);
        open[other]!--;
      }
    }
  }
}

/** A binary heap of resources by what each gives to one flow. */
class ShareHeap {
  readonly #shares: number[] = [];
  readonly #resources: number[] = [];

  push(share: number, resource: number): void {
    let at = this.#shares.length;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (this.#shares[parent]! <= share) break;
      this.#shares[at] = this.#shares[parent]!;
      this.#resources[at] = this.#resources[parent]!;
      at = parent;
    }
    this.#shares[at] = share;
    this.#resources[at] = resource;
  }

  pop(): { share: number; resource: number } | undefined {
    if (this.#shares.length === 0) return undefined;
    const found = { share: this.#shares[0]!, resource: this.#resources[0]! };
    const share = this.#shares.pop()!;
    const resource = this.#resources.pop()!;
    const length = this.#shares.length;
    if (length === 0) return found;
    let at = 0;
    for (let child = 1; child < length; child = 2 * at + 1) {
      if (child + 1 < length && this.#shares[child + 1]! < this.#shares[child]!) child++;
      if (share <= this.#shares[child]!) break;
      this.#shares[at] = this.#shares[child]!;
      this.#resources[at] = this.#resources[child]!;
      at = child;
    }
    this.#shares[at] = share;
    this.#resources[at] = resource;
    return found;
  }
}
