/**
 * WebTransport in a browser's worker: HTTP/3 datagrams; the proxy's certificate is known by its hash, from Origo's
 * list.
 */
import { Fragmenter, Reassembler } from "@tributary/protocol";
import { collectWhileBusy } from "../collect-browser";
import { messageOf } from "../errors";
import type { Channel, ChannelOptions, Transport } from "../platform";
import { withFirst } from "./webtransport";

/** Datagrams that wait for a read: without it, Chromium keeps a single one while the worker is busy. */
const INCOMING_DATAGRAMS_MAX = 4096;
/** What QUIC carries on any path, should the browser not say. */
const DATAGRAM_BYTES_MAX = 1161;

export const browserWebTransport: Transport = {
  name: "webtransport",
  reaches: ({ webTransport }) => webTransport !== undefined && typeof WebTransport === "function",
  open,
};

async function open({ proxy, first, signal, onMessage, onClosed }: ChannelOptions): Promise<Channel> {
  const { url, certificateHashes } = proxy.webTransport!;
  const serverCertificateHashes = certificateHashes.map((hash) => ({ algorithm: "sha-256", value: bytesOfHex(hash) }));
  const session = new WebTransport(withFirst(url, first), { serverCertificateHashes, requireUnreliable: true });
  // What the first message brings may come before the session is known to be open.
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
    // Not cut short: Chromium makes the next handshakes wait, for minutes, for each that was.
    session.ready.then(
      () => session.close(),
      () => undefined,
    );
    throw error;
  }
  // Where a browser keeps nothing that was set before it was open.
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
    // The session's end is told by `closed`.
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
