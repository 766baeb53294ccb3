/** All cases of the fidelity suite. */
import type { FidelityCase } from "../kit";
import { CACHES } from "./caches";
import { DOORS } from "./doors";
import { ELEMENTS } from "./elements";
import { HEADS } from "./heads";
import { CHOOSING_HOSTS } from "./hosts";
import { LIMITS } from "./limits";
import { MARKS } from "./marks";
import { PAGES } from "./pages";
import { SHAPES } from "./shapes";
import { STALE } from "./stale";
import { WORKERS } from "./workers";
import { XHRS } from "./xhrs";

export { OPEN } from "./open";

/** Cases that `npm test` leaves out, because others are much like them. */
const RARE: ReadonlySet<string> = new Set(
  `stale/expired stale/expires-0 stale/age-over stale/vary-all stale/no-cache-with-etag stale/file-written-lately
   stale/max-age-1 hosts/referer-403-without-cors redirect/307-and-fragment redirect/to-another-scheme redirect/loop
   redirect/from-own-host redirect/null-origin-allowed redirect/five-hops cors/two-values cors/head
   cors/mode-same-origin cors/cross-origin-resource-policy cors/named cors/own-header-refused
   csp/connect-none-but-home csp/default-self csp/report-only heads/odd-type heads/without-type heads/blob
   heads/request-object heads/cache-api-add heads/exposed-by-star heads/latin-1-value heads/same-names
   caches/preloaded-in-the-page xhr/used-twice xhr/synchronous xhr/head xhr/with-credentials xhr/override-type
   workers/service-worker-without-fetch limits/slow-body limits/xhr-timeout-over-a-slow-first-byte
   limits/status-204-205 limits/first-byte-after-2-s video/empty video/missing video/a-page
   video/paused video/autoplay video/seek-while-paused video/another-file video/shorter-index
   video/fragment video/poster-and-track video/canvas-with-crossorigin
   shapes/addresses shapes/requests shapes/byob shapes/signals shapes/abort-in-the-body shapes/options
   shapes/referrer-heard shapes/head-before-get shapes/conditional shapes/byte-ranges shapes/ranges-ignored
   shapes/ranges-of-a-growing-file shapes/shorter-range-than-asked shapes/wrong-content-range shapes/no-content-
   range shapes/several-ranges shapes/parts-that-block shapes/partial-without-a-range shapes/always-compressed
   shapes/one-time-tokens shapes/early-hints shapes/failover-between-hosts pages/isolated pages/cookies-of-paths
   pages/navigation-preload pages/host-named-with-a-dot pages/functions-wrapped-later pages/functions-of-a-frame
   pages/document-opened-anew pages/names-of-the-window pages/frame-of-the-same-host pages/frame-of-another-host
   pages/frame-sandboxed pages/frame-by-data pages/frame-by-blob pages/worker-dedicated pages/worker-shared
   pages/worker-of-a-blob xhr/odd-calls xhr/upload-listener pages/prerendered`.split(/\s+/),
);

export const CASES: readonly FidelityCase[] = [
  ...STALE,
  ...CHOOSING_HOSTS,
  ...MARKS,
  ...WORKERS,
  ...LIMITS,
  ...DOORS,
  ...HEADS,
  ...CACHES,
  ...XHRS,
  ...ELEMENTS,
  ...SHAPES,
  ...PAGES,
].map((each) => (RARE.has(each.name) ? { ...each, long: true } : each));
