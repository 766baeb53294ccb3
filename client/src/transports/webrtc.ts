/**
 * A channel over WebRTC, the same for browser and Node: one data channel to the proxy and, each time the proxy asks for it,
 * another one of the same session, over a connection of its own. Tells the proxy over each how many messages have come and
 * which was the newest, which is how the proxy knows of losses. Rules: docs/transport.md §4.
 */
import { fingerprintOf, Fragmenter, LIMITS } from "@tributary/protocol";
import type { Channel, ChannelOptions, DeliverySignals, Transport } from "../platform";

/** One open data channel. */
export interface Association {
  /** False when it was not taken. */
  send(message: Uint8Array | string): boolean;
  signals(): Promise<DeliverySignals | undefined>;
  close(): void;
}

export interface AssociationOptions {
  exchange(offerSdp: string): Promise<string>;
  /** Gives the attempt up; the promise rejects and nothing stays open. */
  signal: AbortSignal;
  onMessage(message: Uint8Array | string): void;
  /** At most once, after it was open, and not for a `close()` of one's own. */
  onClosed(reason: string): void;
}

export type OpenAssociation = (options: AssociationOptions) => Promise<Association>;

const ASSOCIATIONS_MAX = 4;
const JOIN_MS_MAX = 5000;
/**
 * A report is sent so long after a message it counts. It takes SCTP's acknowledgement along: Chromium holds back that of a last
 * packet for so long that the sender takes it for lost and starts over with a window of one packet.
 */
const REPORT_MS = 20;
const JOIN = /^join ([0-9a-f]{32})$/;

export function webRtcOver(open: OpenAssociation): Transport {
  return { name: "webrtc", reaches: () => true, open: (options) => WebRtcChannel.open(open, options) };
}

class WebRtcChannel implements Channel {
  /** The first one carries what this end sends. */
  private readonly associations: Association[] = [];
  private readonly fragmenter = new Fragmenter();
  private joining: AbortController | undefined;
  private closed = false;

  static async open(open: OpenAssociation, options: ChannelOptions): Promise<Channel> {
    const channel = new WebRtcChannel(open, options);
    await channel.add({ exchange: (offer) => options.exchange(offer), signal: options.signal });
    return channel;
  }

  private constructor(private readonly openOne: OpenAssociation, private readonly options: ChannelOptions) {}

  send(bytes: Uint8Array): boolean {
    const [first] = this.associations;
    if (this.closed || !first) return false;
    return this.fragmenter.split(bytes, LIMITS.channelMessageBytesMax).every((piece) => first.send(piece));
  }

  signals(): Promise<DeliverySignals | undefined> {
    return this.associations[0]?.signals() ?? Promise.resolve(undefined);
  }

  close(): void {
    this.closed = true;
    this.joining?.abort(new Error("the channel was closed"));
    for (const association of this.associations.splice(0)) association.close();
  }

  private async add(attempt: Pick<AssociationOptions, "exchange" | "signal">): Promise<void> {
    let [received, newest] = [0, 0];
    let timer: ReturnType<typeof setTimeout> | undefined;
    const report = (): void => {
      timer = undefined;
      association.send(`${received} ${newest}`);
    };
    const association: Association = await this.openOne({
      ...attempt,
      onMessage: (message) => {
        if (this.closed) return;
        if (typeof message === "string") return this.handleText(message);
        received++;
        newest = fingerprintOf(message);
        timer ??= setTimeout(report, REPORT_MS);
        this.options.onMessage(message);
      },
      onClosed: (reason) => {
        clearTimeout(timer);
        this.remove(association, reason);
      },
    });
    if (this.closed) association.close();
    else this.associations.push(association);
  }

  private remove(association: Association, reason: string): void {
    const index = this.associations.indexOf(association);
    if (index < 0) return;
    this.associations.splice(index, 1);
    if (this.associations.length > 0) return;
    this.close();
    this.options.onClosed(reason);
  }

  /** The proxy asks for another association. What comes of that is its affair: without, all goes on as before. */
  private handleText(text: string): void {
    const word = JOIN.exec(text)?.[1];
    if (word === undefined || this.joining || this.associations.length >= ASSOCIATIONS_MAX) return;
    const joining = (this.joining = new AbortController());
    const timer = setTimeout(() => joining.abort(new Error("no further association in time")), JOIN_MS_MAX);
    this.add({ exchange: (offer) => this.options.exchange(offer, word), signal: joining.signal })
      .catch(() => undefined)
      .finally(() => {
        clearTimeout(timer);
        this.joining = undefined;
      });
  }
}
