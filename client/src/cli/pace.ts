/** `--limit-rate`: all downloads of the command share one rate. Their bytes wait before they go on. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Download } from "../api";
import type { ProxyClient } from "../client";
import { stopped } from "./signals";

/** What the commands need of the client. */
export type Source = Pick<ProxyClient, "get" | "live">;

/** The client as it is without a limit. */
export function paced(client: ProxyClient, bytesPerSec: number | undefined): Source {
  if (bytesPerSec === undefined) return client;
  const pace = new Pace(bytesPerSec);
  return {
    get live() {
      return client.live;
    },
    get: (url, options) => heldBack(client.get(url, options), pace),
  };
}

function heldBack(download: Download, pace: Pace): Download {
  let body: Download["body"] | undefined;
  return {
    head: download.head,
    get body() {
      return (body ??= pacedBody(download.body.getReader(), pace));
    },
    get record() {
      return download.record;
    },
    abort: (reason) => download.abort(reason),
  };
}

/** It holds one piece at most, so what the download has delivered is what the command gets. */
function pacedBody(reader: ReadableStreamDefaultReader<Uint8Array>, pace: Pace): Download["body"] {
  return new ReadableStream<Uint8Array>(
    {
      pull: async (controller) => {
        const { done, value } = await reader.read();
        if (done) return controller.close();
        await pace.take(value.length);
        controller.enqueue(value);
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  );
}

class Pace {
  readonly #bytesPerSec: number;
  /** When the bytes that were taken so far are through. */
  #freeMs = 0;

  constructor(bytesPerSec: number) {
    this.#bytesPerSec = bytesPerSec;
  }

  /** Resolves when the bytes may go on, or at a signal that ends the command. */
  async take(bytes: number): Promise<void> {
    const nowMs = performance.now();
    this.#freeMs = Math.max(this.#freeMs, nowMs) + (bytes * 1000) / this.#bytesPerSec;
    await sleep(this.#freeMs - nowMs, undefined, { signal: stopped }).catch(() => undefined);
  }
}
