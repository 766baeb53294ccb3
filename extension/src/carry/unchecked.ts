/**
 * Unchecked: tells the transport how much of published files the page's `<video>` and `<audio>` elements got from the
 * browser itself (Resource Timing). Nobody checks these bytes. A page's workers have lists of their own, which no
 * script of the page sees.
 */
import type { Link } from "../page/link";
import { entryOf } from "../shared/platform";
import { hearEntries, resourceOf } from "../shared/late-platform";
import { isOneOf } from "../shared/primordials";
import { isObjectUrl, isPublishedUrl } from "../shared/rules";

const ELEMENTS = ["video", "audio"];

export function noteUnchecked(link: Pick<Link, "await" | "post">): void {
  hearEntries({ type: "resource", buffered: true }, (entry) => {
    const { initiatorType, decodedBodySize: bytes } = resourceOf(entry as PerformanceResourceTiming);
    const { name: url } = entryOf(entry);
    if (bytes === 0 || !isOneOf(ELEMENTS, initiatorType)) return;
    // An element follows a redirect once, and then asks the proxy.
    if (isPublishedUrl(url) || isObjectUrl(url)) link.await(() => link.post({ type: "unchecked", url, bytes }));
  });
}
