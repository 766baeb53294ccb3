/** Rewrites DASH manifests (ISO/IEC 23009-1) for the gateway, and tells which addresses are segments. No I/O. */
import { DOMParser, XMLSerializer } from "@xmldom/xmldom";
import { mirrorAt, resolved, rewritten } from "./addresses";
import type { Playlist } from "./hls";

export interface Manifest extends Playlist {
  /** An address with names between dollar signs, from which the player makes the addresses of segments. */
  onTemplate(url: URL): void;
}

const XLINK = "http://www.w3.org/1999/xlink";
const ELEMENT_NODE = 1;
/** Attributes that hold the address of media. */
const MEDIA_ATTRIBUTES: Partial<Record<string, readonly string[]>> = {
  SegmentTemplate: ["media", "initialization", "index", "bitstreamSwitching"],
  SegmentURL: ["media", "index"],
  Initialization: ["sourceURL"],
  RepresentationIndex: ["sourceURL"],
  BitstreamSwitching: ["sourceURL"],
};
/** Elements whose text is the address of another manifest. */
const MANIFEST_ELEMENTS = new Set(["Location", "PatchLocation"]);

/** A document that is not XML stays as it is: its relative addresses work. */
export function rewriteDash(text: string, manifest: Manifest): string {
  const fail = (message: string): never => {
    throw new Error(message);
  };
  try {
    const errorHandler = { warning: () => undefined, error: fail, fatalError: fail };
    const document = new DOMParser({ errorHandler }).parseFromString(text.replace(/^\uFEFF/, ""), "text/xml");
    rewriteElement(document.documentElement, manifest.base, manifest);
    return new XMLSerializer().serializeToString(document);
  } catch {
    return text;
  }
}

/** `base` is the address at the origin against which the element's references are resolved (§5.6.4). */
function rewriteElement(element: Element, base: URL, manifest: Manifest): void {
  const children = elementsIn(element);
  const inner = rewriteBases(element, children, base, manifest);
  for (const name of MEDIA_ATTRIBUTES[nameOf(element)] ?? []) rewriteMedia(element, name, inner, manifest);
  const linked = element.getAttributeNS(XLINK, "href");
  if (linked) element.setAttributeNS(XLINK, "xlink:href", small(linked, base, manifest));
  if (MANIFEST_ELEMENTS.has(nameOf(element))) element.textContent = small(textOf(element), manifest.base, manifest);
  if (nameOf(element) === "UTCTiming" && element.getAttribute("schemeIdUri")?.includes(":utc:http-"))
    rewriteClock(element, base, manifest);
  for (const child of children) rewriteElement(child, inner, manifest);
}

/** Rewrites the BaseURL children, and returns the base that the first one gives. */
function rewriteBases(element: Element, children: readonly Element[], base: URL, manifest: Manifest): URL {
  let inner: URL | undefined;
  for (const child of children.filter((each) => nameOf(each) === "BaseURL")) {
    const url = resolved(textOf(child), base);
    inner ??= url;
    if (url && !url.pathname.endsWith("/") && nameOf(element) === "Representation") manifest.onSegment(url);
    child.textContent = rewritten(textOf(child), mirrorAt(base, manifest.gateway));
  }
  return inner ?? base;
}

function rewriteMedia(element: Element, name: string, base: URL, manifest: Manifest): void {
  const reference = element.getAttribute(name)?.trim();
  if (!reference) return;
  const url = resolved(reference, base);
  if (url) (url.href.includes("$") ? manifest.onTemplate : manifest.onSegment)(url);
  element.setAttribute(name, rewritten(reference, mirrorAt(base, manifest.gateway)));
}

/** The value is a list of addresses (§5.8.4.11). */
function rewriteClock(element: Element, base: URL, manifest: Manifest): void {
  const addresses = (element.getAttribute("value") ?? "").split(/\s+/).filter((each) => each !== "");
  element.setAttribute("value", addresses.map((each) => small(each, base, manifest)).join(" "));
}

function small(reference: string, base: URL, manifest: Manifest): string {
  const url = resolved(reference, base);
  if (url) manifest.onSmall(url);
  return rewritten(reference, mirrorAt(base, manifest.gateway));
}

function elementsIn(element: Element): Element[] {
  return Array.from(element.childNodes).filter((node): node is Element => node.nodeType === ELEMENT_NODE);
}

function nameOf(element: Element): string {
  return element.localName ?? element.nodeName;
}

function textOf(element: Element): string {
  return element.textContent?.trim() ?? "";
}
