/**
 * Convictions: evidence of clients against proxies that sent false packets of published objects. Each piece of evidence
 * is checked (contract/src/evidence.ts). A proxy that clients in several networks convicted is disabled, until an
 * admin enables it again.
 */
import { randomUUID } from "node:crypto";
import { Conviction, ConvictionResponse } from "@tributary/contract/conviction";
import { evidenceFault } from "@tributary/contract/evidence";
import { EVIDENCE_LIMITS } from "@tributary/contract/message-limits";
import { sha256 } from "./compare";
import type { Configuration } from "./configuration";
import type { Convictions } from "./convictions";
import { countOrRefuse, endpoint, notFound, Refusal, type Endpoint } from "./http";
import { limitKeyOf, networkOf } from "./network";
import type { Publications } from "./publications";
import { RateLimit } from "./rate-limit";
import type { Registry } from "./registry";
import type { AdminStore } from "./store/admin-store";
import type { Store } from "./store/index";
import type { Log } from "./telemetry";

/** One address may send this many in ten minutes. */
const PER_ADDRESS = 10;
const TOO_MUCH = `this address sent too much evidence: got ${PER_ADDRESS + 1} in ten minutes, limit ${PER_ADDRESS}`;
const WINDOW_MS = 600_000;
const ADDRESSES_MAX = 50_000;

export interface ConvictionOptions {
  registry: Registry;
  convictions: Convictions;
  configuration: Configuration;
  publications: Publications;
  adminStore: AdminStore;
  store: Store;
  log: Log;
  nowMs: () => number;
  /** Called when something was decided about a proxy. */
  onDecision: (id: string) => void;
  /** Called when a proxy was convicted in one more network. */
  onConviction: () => void;
}

export function convictionEndpoints(options: ConvictionOptions): Endpoint[] {
  const sent = new RateLimit({ limit: () => PER_ADDRESS, windowMs: () => WINDOW_MS, keysMax: ADDRESSES_MAX });
  return [
    endpoint({
      method: "post",
      path: "/v1/convictions",
      access: "open",
      summary: "Send evidence that a proxy sent a false packet of a published object",
      body: Conviction,
      bodyBytesMax: EVIDENCE_LIMITS.bytes,
      answer: ConvictionResponse,
      status: 202,
      handle: async ({ body, request }) => {
        const address = request.ip ?? "";
        countOrRefuse(sent, limitKeyOf(address), options.nowMs(), () => TOO_MUCH);
        await check(body, options);
        return { networks: await convict(body, networkOf(address), options) };
      },
    }),
  ];
}

async function check(evidence: Conviction, { registry, publications, nowMs }: ConvictionOptions): Promise<void> {
  const { proxy, key, name, object } = evidence;
  if (!registry.fleet(nowMs()).some(({ id }) => id === proxy))
    throw notFound(`there is no live proxy ${proxy}`, "proxy");
  const published = await publications.released({ key, name });
  if (!published?.objects.includes(object))
    throw notFound(`no released publication ${name} of ${key} has the object ${object}`, "object");
  const fault = evidenceFault(evidence, (text) => Buffer.from(text, "base64"), sha256);
  if (fault !== undefined) throw new Refusal(422, { kind: "evidenceWrong", message: fault });
}

/** Returns in how many networks the proxy is convicted now. */
async function convict({ proxy, object }: Conviction, network: string, options: ConvictionOptions): Promise<number> {
  const { registry, convictions, configuration, adminStore, store, log, nowMs, onDecision, onConviction } = options;
  const [before, networks] = await convictions.note(proxy, network);
  if (networks <= before) return networks;
  onConviction();
  const decision = registry.decisionOn(proxy);
  const name = registry.fleet(nowMs()).find(({ id }) => id === proxy)?.name ?? proxy;
  const isDisabled = networks >= configuration.value("origo.convictionsMin") && decision.state !== "disabled";
  if (isDisabled) {
    const disabled = { ...decision, state: "disabled" as const, isConvicted: true };
    await adminStore.decide(proxy, disabled);
    registry.decide(proxy, disabled);
    onDecision(proxy);
  }
  log.warn({ event: "proxyConvicted", proxy, networks, isDisabled });
  const end = isDisabled ? " The proxy is disabled." : "";
  const message =
    `Proxy ${name}: a client showed a false packet of the object ${object}, and Origo checked it. ` +
    `Networks with evidence: ${networks}.${end}`;
  const report = { id: randomUUID(), atMs: nowMs(), source: "proxy", kind: "digestMismatch", message } as const;
  await store.addErrors([report], nowMs());
  return networks;
}
