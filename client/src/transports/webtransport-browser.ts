/**
 * WebTransport in a browser's worker: HTTP/3 datagrams. The browser accepts the proxy's certificate by its hash, which
 * Origo lists.
 */
import { Fragmenter, Reassembler } from "@tributary/protocol";
import type { ProxyInfo } from "../api";
import { collectWhileBusy } from "../collect-browser";
import { messageOf } from "../errors";
import type { Channel, ChannelOptions, Transport } from "../platform";
import { withFirst } from "./webtransport";

/** This many datagrams may wait for a read. By default Chromium keeps a single one while the worker is busy. */
const INCOMING_DATAGRAMS_MAX = 4096;
/** This size fits every QUIC path. It is used if the browser reports no size. */
const DATAGRAM_BYTES_MAX = 1161;

export const browserWebTransport: Transport = {
  name: "webtransport",
  reaches: ({ webTransport }) => webTransport !== undefined && typeof WebTransport === "function",
  open,
};

/** A session that is being opened to a proxy that offers WebTransport. */
export function openingOf({ webTransport }: ProxyInfo, first?: Uint8Array): WebTransport {
  const { url, certificateHashes } = webTransport!;
  const serverCertificateHashes = certificateHashes.map((hash) => ({ algorithm: "sha-256", value: bytesOfHex(hash) }));
  return new WebTransport(withFirst(url, first), { serverCertificateHashes, requireUnreliable: true });
}

async function open({ proxy, first, signal, onMessage, onClosed }: ChannelOptions): Promise<Channel> {
  const session = openingOf(proxy, first);
  // Answers to the first message may come before the session is reported open.
  session.datagrams.incomingHighWaterMark = INCOMING_DATAGRAMS_MAX;
  let state: "opening" | "open" | "ended" = "opening";
  const lost = (reason: string): void => {
    const wasOpen = state === "open";
    state = "ended";
    if (wasOpen) onClosed(reason);
  };
  session.closed.then(
    ({ reason }) => lost(reason || "the session was closed"),
    (error: unknown) => lost(messageOf(error)),
  );
  try {
    await orAborted(session.ready, signal);
  } catch (error) {
    // Do not close during the handshake: after that, Chromium delays the next handshakes for minutes.
    session.ready.then(
      () => session.close(),
      () => undefined,
    );
    throw error;
  }
  // Some browsers forget a value that was set before the session was open.
  session.datagrams.incomingHighWaterMark = INCOMING_DATAGRAMS_MAX;
  state = "open";
  void readAll(session, onMessage, () => state === "open");
  const send = senderOf(session);
  return {
    send: (bytes) => state === "open" && send(bytes),
    close: () => {
      if (state === "open") session.close();
      state = "ended";
    },
  };
}

async function readAll(
  session: WebTransport,
  onMessage: (bytes: Uint8Array) => void,
  isOpen: () => boolean,
): Promise<void> {
  const reader = (session.datagrams.readable as ReadableStream<Uint8Array>).getReader();
  const reassembler = new Reassembler();
  try {
    for (let read = await reader.read(); !read.done && isOpen(); read = await reader.read()) {
      const message = reassembler.accept(read.value);
      if (message) onMessage(message);
      collectWhileBusy();
    }
  } catch {
    // `session.closed` reports the end of the session.
  }
}

function senderOf(session: WebTransport): (bytes: Uint8Array) => boolean {
  const { datagrams } = session as {
    datagrams: WebTransportDatagramDuplexStream & { createWritable?: () => WritableStream<Uint8Array> };
  };
  const writer = (datagrams.createWritable ? datagrams.createWritable() : datagrams.writable).getWriter();
  const fragmenter = new Fragmenter();
  return (bytes) => {
    const pieces = fragmenter.split(bytes, datagrams.maxDatagramSize || DATAGRAM_BYTES_MAX);
    for (const piece of pieces) writer.write(piece).catch(() => undefined);
    return pieces.length > 0;
  };
}

function orAborted<T>(made: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason as Error);
    if (signal.aborted) onAbort();
    signal.addEventListener("abort", onAbort);
    made.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}

function bytesOfHex(hex: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from({ length: hex.length / 2 }, (_, index) =>
    Number.parseInt(hex.slice(2 * index, 2 * index + 2), 16),
  );
}
