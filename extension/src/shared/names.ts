/**
 * Names: what the extension's contexts call each other by. Constants only.
 */

/** Events on `document` between the page script (MAIN world) and the content script (isolated world). */
export const NEED_EVENT = "tributary-need";
export const CONNECTED_EVENT = "tributary-connected";
/** Its `detail` is a string: `off` (the viewer turned the extension off) or `on` (it was off and is on again). */
export const SWITCH_EVENT = "tributary-switch";

/** The page script needs the plain-video script; the latter is there, its `detail` a PlainPlayer. */
export const PLAIN_NEED_EVENT = "tributary-plain-need";
export const PLAIN_READY_EVENT = "tributary-plain-ready";

/** Its `detail` is the given rules as JSON text. */
export const RULES_EVENT = "tributary-rules";

/** The frame's message to the page that carries the port. */
export const PORT_MESSAGE = "tributary-port";

export const PLAIN_PATH = "plain.js";
export const FRAME_PATH = "frame.html";
export const TRANSPORT_PATH = "transport.html";
/** Name of the runtime connection over which the transport sends the popup its live figures. */
export const LIVE_CONNECTION = "live";
