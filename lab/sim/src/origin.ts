/** The origin of a chunk, as a proxy's sender meets it: the head and the bytes arrive over the origin's own link. */
import type { PlanHead, Sender } from "@tributary/protocol";
import { sourceOf } from "./content";
import type { EventQueue } from "./events";
import { sharedSourceOf, type Shared } from "./shared-source";
import type { OriginLeg } from "./world";

interface OriginPlace {
  events: EventQueue;
  /** The proxy has the whole chunk already if there is no leg. */
  leg: OriginLeg | undefined;
  original: Uint8Array;
  /** Gives the proofs of an object's pieces. */
  proof?: ((piece: number) => Uint8Array) | undefined;
  /** The proxy reads only a part of the chunk. */
  shared?: Shared | undefined;
  /** Time between two looks at what has arrived. */
  stepMs: number;
  /** False when the sender was replaced, or when its origin failed. */
  isCurrent(): boolean;
  /** More bytes are at the proxy. */
  onBytes(): void;
}

/** Gives `sender` its plan when the head is at the proxy, then calls `onBytes` until all bytes are there. */
export function feedFromOrigin(sender: Sender, head: Omit<PlanHead, "serverFetchMs">, place: OriginPlace): void {
  const { events, leg, original, proof, stepMs, shared } = place;
  if (shared) return feedShared(sender, head, place, shared);
  const plan = { ...head, serverFetchMs: leg?.rttMs ?? 0 };
  if (!leg)
    return sender.handlePlan(
      plan,
      sourceOf(original, () => original.length, proof),
    );
  const headMs = events.nowMs + leg.rttMs;
  const available = () => {
    const arrived = Math.floor(((events.nowMs - headMs) * leg.bytesPerSec) / 1000);
    return Math.max(0, Math.min(original.length, arrived));
  };
  const onStep = events.register(() => {
    if (!place.isCurrent() || sender.finished) return;
    place.onBytes();
    if (available() < original.length) events.schedule(events.nowMs + stepMs, onStep, 0);
  });
  const onHead = events.register(() => {
    if (!place.isCurrent()) return;
    sender.handlePlan(plan, sourceOf(original, available, proof));
    events.schedule(events.nowMs, onStep, 0);
  });
  events.schedule(headMs, onHead, 0);
}

/** The proxy reads its part, and gets other generations when its client wants them. */
function feedShared(sender: Sender, head: Omit<PlanHead, "serverFetchMs">, place: OriginPlace, shared: Shared): void {
  const { events, leg, original, stepMs } = place;
  const headMs = events.nowMs + (leg?.rttMs ?? 0);
  const source = sharedSourceOf(original, shared, {
    nowMs: () => events.nowMs,
    sinceMs: () => events.nowMs - headMs,
    leg,
    onWanted: (dueMs) => events.schedule(dueMs, onStep, 0),
  });
  const onStep = events.register(() => {
    if (place.isCurrent() && !sender.finished) place.onBytes();
  });
  const onHead = events.register(() => {
    if (!place.isCurrent()) return;
    sender.handlePlan({ ...head, serverFetchMs: leg?.rttMs ?? 0, reads: shared.spans }, source);
    place.onBytes();
    for (let atMs = headMs + stepMs; atMs < headMs + source.readMs + 2 * stepMs; atMs += stepMs)
      events.schedule(atMs, onStep, 0);
  });
  events.schedule(headMs, onHead, 0);
}
