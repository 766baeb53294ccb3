/**
 * The engine behind a message port. This file makes the codec, keeps the clock and the only timer, and holds the
 * channels in the worker, whose packets never cross the main thread. It runs in a browser and in Node.
 */
import type { Codec } from "@tributary/protocol";
import { messageOf } from "./errors";
import { Engine, type EngineMessage, type Hash } from "./engine";
import { unpack, type FromEngine, type ToEngine } from "./messages";
import type { Channel, Transport } from "./platform";
import { rehearse } from "./rehearsal";

export interface Port {
  post(message: FromEngine, transfer: ArrayBuffer[]): void;
}

export interface WorkerEnvironment {
  transports: readonly Transport[];
  /** Makes the codec from the WebAssembly module, or a faster one if the environment has it. */
  makeCodec(wasm: ArrayBuffer): Codec;
  /** By default a hash in JavaScript. */
  hash?: Hash;
  /** Runs `task` soon, in its own macrotask. */
  defer(task: () => void): void;
  /** Collects garbage. Called when no request is open. */
  collect?(): void;
}

/** The rehearsal runs for this long at a time. Then other tasks get their turn. */
const REHEARSAL_SLICE_MS = 4;

/** This many packets of a session go to the engine at once. Fewer packets go at the end of the macrotask. */
const BATCH_PACKETS = 64;

/**
 * Returns the handler for the messages of the main thread. Messages to the engine wait until the codec is made. A
 * channel that is opened after such a message waits too, because the engine gives its first message.
 */
export function serveEngine(port: Port, environment: WorkerEnvironment): (message: ToEngine) => void {
  let engine: Engine | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let timerAtMs = Infinity;
  const waiting: (EngineMessage | Extract<ToEngine, { type: "open" }>)[] = [];
  const channels = new WorkerChannels(
    port,
    environment,
    (bySession) => {
      engine?.receive(bySession, performance.now());
      if (engine) arm(engine);
    },
    {
      first: (session) => engine?.firstOf(session, performance.now()),
      opened: (session) => engine?.handleOpened(session, performance.now()),
      gone: (session) => engine?.handleChannelGone(session, performance.now()),
    },
  );

  /**
   * Sets the timer. If the due time moves to later, the timer stays and is set again when it fires. Otherwise every
   * packet would set it.
   */
  const arm = (current: Engine): void => {
    const at = current.pollTimeout() ?? Infinity;
    if (at >= timerAtMs) return;
    clearTimeout(timer);
    timerAtMs = at;
    timer = setTimeout(
      () => {
        timerAtMs = Infinity;
        if ((current.pollTimeout() ?? Infinity) > performance.now()) return arm(current);
        // A late timer fires before the packets that waited meanwhile. The packets are read first.
        environment.defer(() => {
          current.handleTimeout(performance.now());
          arm(current);
        });
      },
      Math.max(1, at - performance.now()),
    );
  };
  /** Runs the rehearsal in slices until it ends or a real download begins. */
  const goOn = (rehearsal: Generator<void, void, void>, current: Engine): void => {
    if (current.openCount > 0) return void rehearsal.return();
    for (const untilMs = performance.now() + REHEARSAL_SLICE_MS; performance.now() < untilMs;)
      if (rehearsal.next().done) return;
    environment.defer(() => goOn(rehearsal, current));
  };
  const handle = (current: Engine, message: EngineMessage): void => {
    current.handle(message, performance.now());
    arm(current);
  };
  const initialise = (wasm: ArrayBuffer): void => {
    try {
      const codec = environment.makeCodec(wasm);
      const post = (message: FromEngine, transfer: ArrayBuffer[]): void => {
        if (message.type !== "send" || !channels.send(message)) port.post(message, transfer);
        if (message.type === "closed") environment.defer(() => made.openCount === 0 && environment.collect?.());
      };
      const made = new Engine(codec, post, environment.hash);
      port.post({ type: "inited", engine: codec.engine }, []);
      engine = made;
      for (const message of waiting.splice(0)) {
        if (message.type === "open") channels.open(message);
        else handle(made, message);
      }
      environment.defer(() => goOn(rehearse(codec, environment.hash), made));
    } catch (error) {
      port.post({ type: "initFailed", message: messageOf(error) }, []);
    }
  };

  return (message) => {
    if (message.type === "init") initialise(message.wasm);
    else if (message.type === "closeChannel") {
      const at = waiting.findIndex((other) => other.type === "open" && other.channel === message.channel);
      if (at >= 0) waiting.splice(at, 1);
      else channels.close(message.channel);
    } else if (message.type === "answer") {
      channels.answer(message.channel, message.sdp);
    } else if (message.type === "open" && (engine || waiting.length === 0)) channels.open(message);
    else if (engine && message.type !== "open") handle(engine, message);
    else waiting.push(message);
  };
}

interface WorkerChannel {
  readonly session: number;
  readonly attempt: AbortController;
  /** Takes the proxy's answer. Undefined before the offer. */
  answer: ((sdp: string) => void) | undefined;
  open: Channel | undefined;
  /** True when a message has come over it. */
  isHeard: boolean;
}

class WorkerChannels {
  readonly #byId = new Map<number, WorkerChannel>();
  readonly #bySession = new Map<number, Channel>();
  #received = new Map<number, Uint8Array[]>();
  #isDeferred = false;

  readonly #port: Port;
  readonly #environment: WorkerEnvironment;
  readonly #deliver: (bySession: ReadonlyMap<number, Uint8Array[]>) => void;
  readonly #requests: {
    first(session: number): Uint8Array | undefined;
    opened(session: number): void;
    /** Called when a channel that had brought messages is gone. */
    gone(session: number): void;
  };

  constructor(
    port: Port,
    environment: WorkerEnvironment,
    deliver: (bySession: ReadonlyMap<number, Uint8Array[]>) => void,
    requests: {
      first(session: number): Uint8Array | undefined;
      opened(session: number): void;
      /** Called when a channel that had brought messages is gone. */
      gone(session: number): void;
    },
  ) {
    this.#port = port;
    this.#environment = environment;
    this.#deliver = deliver;
    this.#requests = requests;
  }

  open({ channel: id, session, transport: name, proxy }: Extract<ToEngine, { type: "open" }>): void {
    const entry: WorkerChannel = {
      session,
      attempt: new AbortController(),
      answer: undefined,
      open: undefined,
      isHeard: false,
    };
    this.#byId.set(id, entry);
    const transport = this.#environment.transports.find((each) => each.name === name && each.reaches(proxy));
    if (!transport) return this.#handleClosed(id, `no ${name} here`);
    const onMessage = (bytes: Uint8Array): void => {
      entry.isHeard = true;
      this.#receive(session, bytes);
    };
    const sendOffer = (offer: string): Promise<string> =>
      new Promise((resolve) => {
        entry.answer = resolve;
        this.#port.post({ type: "sendOffer", channel: id, offer }, []);
      });
    const onClosed = (reason: string): void => this.#handleClosed(id, reason);
    transport
      .open({
        proxy,
        session,
        first: this.#requests.first(session),
        sendOffer,
        signal: entry.attempt.signal,
        onMessage,
        onClosed,
      })
      .then(
        (channel) => {
          if (this.#byId.get(id) !== entry) return channel.close();
          entry.open = channel;
          // If two channels open, the main thread keeps the one that it hears of first, and closes the other one.
          if (!this.#bySession.has(session)) this.#bySession.set(session, channel);
          this.#port.post({ type: "opened", channel: id }, []);
          this.#requests.opened(session);
        },
        (error: unknown) => this.#handleClosed(id, messageOf(error)),
      );
  }

  answer(id: number, sdp: string): void {
    this.#byId.get(id)?.answer?.(sdp);
  }

  close(id: number): void {
    const entry = this.#forget(id);
    entry?.attempt.abort(new Error("given up"));
    entry?.open?.close();
  }

  /** Returns false when the session has no channel in this worker. */
  send({ session, frames }: Extract<FromEngine, { type: "send" }>): boolean {
    const channel = this.#bySession.get(session);
    if (channel) for (const bytes of unpack(frames)) channel.send(bytes);
    return channel !== undefined;
  }

  #handleClosed(id: number, reason: string): void {
    if (this.#forget(id)) this.#port.post({ type: "channelClosed", channel: id, reason }, []);
  }

  #forget(id: number): WorkerChannel | undefined {
    const entry = this.#byId.get(id);
    this.#byId.delete(id);
    if (entry?.open && this.#bySession.get(entry.session) === entry.open) this.#replace(entry.session);
    if (entry?.isHeard) {
      this.#flush();
      this.#requests.gone(entry.session);
    }
    return entry;
  }

  /**
   * Replaces the lost channel of a session by another open one, if there is one. Two can be open when the main thread
   * gave up a channel just before it opened.
   */
  #replace(session: number): void {
    const other = [...this.#byId.values()].find((each) => each.session === session && each.open)?.open;
    if (other) this.#bySession.set(session, other);
    else this.#bySession.delete(session);
  }

  #receive(session: number, bytes: Uint8Array): void {
    const batch = this.#received.get(session);
    if (!batch) this.#received.set(session, [bytes]);
    else if (batch.push(bytes) >= BATCH_PACKETS) return this.#flush();
    if (this.#isDeferred) return;
    this.#isDeferred = true;
    this.#environment.defer(() => {
      this.#isDeferred = false;
      this.#flush();
    });
  }

  #flush(): void {
    const received = this.#received;
    this.#received = new Map();
    this.#deliver(received);
  }
}
