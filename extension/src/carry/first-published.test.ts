import { HEAD, PUBLISHED, Site } from "../../test/carried-scene";
import type { CarriedRequestEvents } from "../shared/carry";
import { FirstPublished } from "./first-published";

const ANSWER = { status: 200, url: PUBLISHED, headers: {} };
const settle = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 10));

function make(isAllowed = true) {
  const sites: Site[] = [];
  const seen: string[] = [];
  let transport: CarriedRequestEvents<Site> | undefined;
  const handle = {
    credit: () => void seen.push("credit"),
    abort: () => void seen.push("abort"),
    useSite: () => void seen.push("useSite"),
  };
  const events: CarriedRequestEvents<Site> = {
    askSite: () => {
      sites.push(new Site());
      return sites.at(-1)!;
    },
    native: (site) => void seen.push(`native ${sites.indexOf(site)}`),
    head: () => void seen.push("head"),
    bytes: () => void seen.push("bytes"),
    end: () => void seen.push("end"),
    error: () => void seen.push("error"),
  };
  const first = new FirstPublished({ willAllow: async () => isAllowed }, PUBLISHED, events, (given) => {
    transport = given;
    return handle;
  });
  return { first, sites, seen, transport: () => transport };
}

test("first of the published: the browser is asked, and its answer gives way to the checked one", async () => {
  const { first, sites, seen, transport } = make();
  await settle();
  expect([sites.length, transport()]).toEqual([1, undefined]);
  sites[0]!.answer(ANSWER);
  await settle();
  expect([seen, sites[0]!.isAborted]).toEqual([[], false]);
  transport()!.head(HEAD);
  transport()!.bytes(new Uint8Array(1));
  first.credit();
  transport()!.end();
  expect([seen, sites[0]!.isAborted]).toEqual([["head", "bytes", "credit", "end"], true]);
});

test("first of the published: the browser's answer serves the page if there is no such publication", async () => {
  const { sites, seen, transport } = make();
  sites[0]!.answer(ANSWER);
  await settle();
  expect(transport()!.askSite()).toBe(sites[0]);
  transport()!.native(sites[0]!);
  expect([seen, sites[0]!.isAborted]).toEqual([["native 0"], false]);
  expect(transport()!.askSite()).toBe(sites[1]);
});

test("first of the published: if no checked bytes come, the page gets an error", async () => {
  const { sites, seen, transport } = make();
  sites[0]!.answer(ANSWER);
  await settle();
  transport()!.error();
  expect([seen, sites[0]!.isAborted]).toEqual([["error"], true]);
});

test("first of the published: nothing is carried without an answer or a permit", async () => {
  const failed = make();
  failed.sites[0]!.fail(new TypeError("refused"));
  const refused = make(false);
  refused.sites[0]!.answer(ANSWER);
  await settle();
  expect([failed.seen, failed.transport()]).toEqual([["native 0"], undefined]);
  expect([refused.seen, refused.transport()]).toEqual([["native 0"], undefined]);
});

test("first of the published: no event follows an abort, before the answer or after it", async () => {
  const before = make();
  before.first.abort();
  before.sites[0]!.answer(ANSWER);
  const after = make();
  after.sites[0]!.answer(ANSWER);
  await settle();
  after.first.abort();
  expect([before.seen, before.transport(), before.sites[0]!.isAborted]).toEqual([[], undefined, true]);
  expect([after.seen, after.sites[0]!.isAborted]).toEqual([["abort"], true]);
});

test("first of the published: another form comes from the browser only before the transport is asked", async () => {
  const before = make();
  before.first.useSite();
  before.sites[0]!.answer(ANSWER);
  const after = make();
  after.sites[0]!.answer(ANSWER);
  await settle();
  after.first.useSite();
  expect([before.seen, before.transport(), after.seen]).toEqual([["native 0"], undefined, ["useSite"]]);
});
