/** Outbox: the control messages that a peer has to send, in order. */
import type { Control, Peer } from "./peer";

export class Outbox {
  #messages: { to: number; control: Control }[] = [];
  #at = 0;

  tell(to: number, control: Control): void {
    this.#messages.push({ to, control });
  }

  tellAll(neighbours: Iterable<number>, control: Control): void {
    for (const to of neighbours) this.tell(to, control);
  }

  poll(): ReturnType<Peer["pollControl"]> {
    const message = this.#messages[this.#at++];
    if (message) return message;
    this.#messages = [];
    this.#at = 0;
    return undefined;
  }
}
