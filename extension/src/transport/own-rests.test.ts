import { CARRYING } from "../../test/port-scene";
import type { GetOptions, OwnRest } from "@tributary/client";
import type { PortLike, ToPage } from "../shared/messages";
import { BUILT_IN } from "../shared/settings";
import { Allowance } from "./allowance";
import { Detours } from "./detours";
import { OwnRests, WAITING_MAX } from "./own-rests";
import { Pace } from "./pace";
import { PagePort } from "./page-port";
import type { CarriedDownload } from "./port-host";
import type { Trust } from "./trust";

const MEDIA = "https://media.example/a.mp4";
const FETCHED = { offset: 0, bytes: 70, status: 200, headMs: 5, outcome: "complete" } as const;

/** A port whose one request the proxies answer with `given`, or with an error. */
function make(given: { headers?: Record<string, string>; bytes?: number } | Error, isKnown = true) {
  let option: GetOptions["ownRest"];
  const port = { onmessage: null, postMessage: () => undefined, close: () => undefined } as PortLike<ToPage>;
  const send = (data: unknown): void => port.onmessage?.({ data } as MessageEvent);
  const isDead = given instanceof Error;
  const headers = isDead ? {} : { "access-control-allow-origin": "*", ...given.headers };
  const head = isDead ? Promise.reject(given) : Promise.resolve({ status: 200, headers, totalBytes: 10 });
  head.catch(() => undefined);
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => {
      if (!isDead && given.bytes !== undefined) controller.enqueue(new Uint8Array(given.bytes));
      if (!isDead && given.bytes === 10) controller.close();
    },
    pull: (controller) => (!isDead && given.bytes === 5 ? controller.error(new Error("gone")) : undefined),
  });
  const pagePort = new PagePort(port, "https://page.example", {
    settings: () => BUILT_IN,
    get: (_url, options): CarriedDownload => {
      option = options.ownRest;
      return { head, body, abort: () => undefined };
    },
    isPublished: () => false,
    mayAskSite: () => Promise.resolve(false),
    detours: new Detours(() => 0),
    trust: { ...CARRYING, isKnown: () => isKnown, compareNext: () => undefined } as unknown as Trust,
    pace: new Pace(),
    allowance: new Allowance(),
    proxyIds: () => [],
    activeCount: () => 0,
    reportWrong: () => undefined,
    noteProxyFailure: () => undefined,
    changed: () => undefined,
    warm: async () => undefined,
    closed: () => undefined,
    nowMs: () => 0,
  });
  send({ type: "get", id: 1, url: MEDIA, range: null, patienceMs: 4000, targets: [] });
  /** What the record is told; `waiting` while it waits. */
  const told = (): Promise<OwnRest | undefined | "waiting"> =>
    Promise.race([option, new Promise<"waiting">((resolve) => setTimeout(() => resolve("waiting"), 20))]);
  return { send, told, pagePort };
}

describe("own rests: the record of a download tells what the page fetched itself", () => {
  test.each<[string, Parameters<typeof make>, object[], string]>([
    ["the proxies failed", [new Error("no proxy")], [], "unknown"],
    ["the proxies failed in the middle", [{ bytes: 5 }], [], "unknown"],
    ["the site won the race", [{}], [{ type: "abort", id: 1, why: "late" }], "stalled"],
    ["only the browser has the form", [{}], [{ type: "abort", id: 1, why: "form" }], "notShown"],
    ["the site does not share with the page", [{ headers: { "access-control-allow-origin": "x" } }], [], "notShown"],
    ["the answer has a new form", [{ bytes: 10 }, false], [], "notShown"],
    ["the proxies were redirected elsewhere", [{ headers: { location: "https://e.example/" } }], [], "notShown"],
  ])("after %s", async (_name, given, messages, kind) => {
    const { send, told } = make(...given);
    expect(await told()).toBe("waiting");
    messages.forEach(send);
    expect(await told()).toBe("waiting");
    send({ type: "fetched", id: 1, ...FETCHED });
    expect(await told()).toMatchObject({ ...FETCHED, reason: { kind } });
  });

  test("before a head came, the site was first", async () => {
    const { send, told } = make({});
    send({ type: "abort", id: 1, why: "late" });
    send({ type: "fetched", id: 1, ...FETCHED });
    expect(await told()).toMatchObject({ reason: { kind: "siteFirst" } });
  });

  test("nothing, if the page gave up or took all from the proxies", async () => {
    const given = make({});
    given.send({ type: "abort", id: 1, why: "abandoned" });
    given.send({ type: "fetched", id: 1, ...FETCHED });
    const whole = make({ bytes: 10 });
    expect([await given.told(), await whole.told()]).toEqual([undefined, undefined]);
  });

  test("a page that is gone, or has too many records waiting, gave them up", async () => {
    const gone = make(new Error("no proxy"));
    expect(await gone.told()).toBe("waiting");
    gone.pagePort.close();
    expect(await gone.told()).toMatchObject({ outcome: "aborted", bytes: 0, reason: { kind: "unknown" } });
    const rests = new OwnRests();
    const heard: number[] = [];
    const reason = { kind: "stalled", message: "" };
    for (let id = 0; id <= WAITING_MAX; id++) rests.wait(id, reason, () => heard.push(id));
    expect(heard).toEqual([0]);
  });
});
