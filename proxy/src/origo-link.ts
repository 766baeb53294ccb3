/**
 * Link to Origo: registers this proxy and reports its status while it runs. After a failure it connects again, with
 * growing pauses and no limit. The proxy serves its clients also while Origo is away.
 */
import {
  ForgetObjects,
  type ObjectsAck,
  type ObjectsReport,
  type ServedAck,
  type ServedReport,
} from "@tributary/contract/publication-schema";
import {
  PeersAnswer,
  ProxyControl,
  ProxyStatus,
  type ProxyAck,
  type ProxyHello,
  type ProxyProof,
} from "@tributary/contract/schema";
import { PROXY_SETTINGS } from "@tributary/contract/settings";
import { io, type Socket } from "socket.io-client";
import type { Prove } from "./identity";
import type { Library } from "./library/library";
import { ObjectsReporter } from "./library/objects-report";
import { ServedReporter } from "./library/served-report";
import type { Log } from "./log";

export interface OrigoLinkOptions {
  origoUrl: string;
  prove: Prove;
  /** The one-time code for the first start, if there is one now. */
  code: () => string | undefined;
  /** The current hello. It changes with the certificates. */
  hello: () => ProxyHello;
  status: () => ProxyStatus;
  /** Called with the id that Origo gave this proxy. */
  onRegistered?: (id: string) => void;
  /** Called when Origo changes something. */
  onControl?: (control: ProxyControl) => void;
  /** Its objects are reported. */
  library?: Library | undefined;
  log: Log;
}

const RETRY_MS_MIN = 250;
/** Shorter than two heartbeats, so that a restarted Origo soon knows its proxies again. */
const RETRY_MS_MAX = 2000;
const ACK_MS_MAX = 5000;

export class OrigoLink {
  readonly #socket: Socket;
  #heartbeat: NodeJS.Timeout | undefined;
  #heartbeatMs: number = PROXY_SETTINGS["proxy.heartbeatMs"].default;
  #retry: NodeJS.Timeout | undefined;
  #retryMs = RETRY_MS_MIN;
  #reported = "";
  /** Of this connection. */
  #challenge = "";

  readonly #objects: ObjectsReporter | undefined;
  readonly #served: ServedReporter | undefined;
  readonly #options: OrigoLinkOptions;

  constructor(options: OrigoLinkOptions) {
    this.#options = options;

    this.#socket = io(`${options.origoUrl}/proxies`, {
      transports: ["websocket"],
      reconnection: false,
      forceNew: true,
      timeout: 5000,
    });
    const { library, log } = options;
    this.#objects = library && new ObjectsReporter({ library, send: (report) => this.#sendObjects(report), log });
    this.#served = library && new ServedReporter({ library, send: (report) => this.#sendServed(report), log });
    this.#socket.on("forget", (message: unknown) => {
      const forgotten = ForgetObjects.safeParse(message);
      if (forgotten.success) library?.pin(forgotten.data.objects, false);
    });
    this.#socket.on("challenge", (challenge: unknown) => {
      this.#challenge = String(challenge);
      this.#register();
    });
    this.#socket.on("control", (message: unknown) => this.#handleControl(message));
    this.#socket.on("connect_error", (error) => this.#connectLater("origoUnreachable", error.message));
    this.#socket.on("disconnect", (reason) => {
      if (reason !== "io client disconnect") this.#connectLater("origoLost", reason);
    });
  }

  /** Sends the hello again, because it has changed. */
  renew(): void {
    if (this.#socket.connected) this.#register();
  }

  /** Sends a report at once, since the next one could be late by the old heartbeat. */
  setHeartbeat(ms: number): void {
    if (ms === this.#heartbeatMs) return;
    this.#heartbeatMs = ms;
    if (this.#heartbeat !== undefined) this.#startHeartbeat();
  }

  close(): void {
    clearInterval(this.#heartbeat);
    clearTimeout(this.#retry);
    this.#objects?.pause();
    this.#served?.pause();
    this.#socket.removeAllListeners();
    this.#socket.disconnect();
  }

  #register(): void {
    const { hello, prove, code } = this.#options;
    const given = code();
    const proof: ProxyProof = { ...prove(this.#challenge), ...(given === undefined ? {} : { code: given }) };
    this.#socket.timeout(ACK_MS_MAX).emit("hello", hello(), proof, (late: Error | null, answer: ProxyAck) => {
      if (late) return this.#refused(`Origo did not answer within ${ACK_MS_MAX} ms`);
      if ("error" in answer) {
        // Another proxy took the code of the file first. Origo writes a new one at once.
        if (answer.error.kind === "codeUsed") this.#retryMs = RETRY_MS_MIN * (0.5 + Math.random());
        return this.#refused(answer.error.message);
      }
      this.#retryMs = RETRY_MS_MIN;
      this.#report("registered", { id: answer.id });
      this.#options.onRegistered?.(answer.id);
      this.#startHeartbeat();
      this.#objects?.begin();
      this.#served?.begin();
    });
  }

  /** The URLs of those of these proxies that are live and of this proxy's fleet. */
  async peers(ids: readonly string[]): Promise<Readonly<Record<string, string>>> {
    const asked: unknown = await this.#socket.timeout(ACK_MS_MAX).emitWithAck("peers", ids);
    const answer = PeersAnswer.safeParse(asked);
    return answer.success ? answer.data.urls : {};
  }

  #sendObjects(report: ObjectsReport): Promise<ObjectsAck> {
    return this.#socket.timeout(ACK_MS_MAX).emitWithAck("objects", report) as Promise<ObjectsAck>;
  }

  #sendServed(report: ServedReport): Promise<ServedAck> {
    return this.#socket.timeout(ACK_MS_MAX).emitWithAck("served", report) as Promise<ServedAck>;
  }

  #refused(reason: string): void {
    this.#socket.disconnect();
    this.#connectLater("origoRefused", reason);
  }

  /** Reports now and at each heartbeat. */
  #startHeartbeat(): void {
    clearInterval(this.#heartbeat);
    this.#heartbeat = setInterval(() => this.#beat(), this.#heartbeatMs);
    this.#beat();
  }

  #handleControl(message: unknown): void {
    const control = ProxyControl.safeParse(message);
    if (control.success) this.#options.onControl?.(control.data);
    else this.#options.log("controlRefused", { reason: control.error.issues[0]?.message ?? "" });
  }

  /** Registers again when Origo answers that it does not know this proxy. */
  #beat(): void {
    this.#socket.timeout(ACK_MS_MAX).emit("status", this.#options.status(), (late: Error | null, answer: ProxyAck) => {
      if (late || !this.#socket.connected || !("error" in answer)) return;
      this.#report("statusRefused", { reason: answer.error.message });
      this.#register();
    });
  }

  #connectLater(event: string, reason: string): void {
    clearInterval(this.#heartbeat);
    this.#heartbeat = undefined;
    this.#objects?.pause();
    this.#served?.pause();
    clearTimeout(this.#retry);
    this.#report(event, { reason });
    this.#retry = setTimeout(() => this.#socket.connect(), this.#retryMs);
    this.#retryMs = Math.min(this.#retryMs * 2, RETRY_MS_MAX);
  }

  /** Logs each change once, not each attempt. */
  #report(event: string, fields: Record<string, string>): void {
    const line = `${event} ${JSON.stringify(fields)}`;
    if (line !== this.#reported) this.#options.log(event, fields);
    this.#reported = line;
  }
}
