/**
 * Names: the names by which the extension's contexts know each other. Constants only.
 */

/** Events on `document` between the page script (MAIN world) and the content script (isolated world). */
export const NEED_EVENT = "tby-need";
export const CONNECTED_EVENT = "tby-connected";
/** The page script asks whether what gave it the port is there. The content script cancels the event if it is. */
export const THERE_EVENT = "tby-there";
/** A page script that starts asks whether another one is in the page. The other one cancels the event. */
export const SECOND_EVENT = "tby-second";
/** Its `detail` is a string: `off` when the viewer turns the extension off, `on` when it is on again. */
export const SWITCH_EVENT = "tby-switch";

/**
 * A script that comes into the page later asks the page script for what it kept (kept.ts). The event's `detail` is a
 * function that takes it.
 */
export const KEPT_EVENT = "tby-kept";
/** The carrying script has loaded. The event's `detail` is a MakeCarrier. */
export const CARRY_READY_EVENT = "tby-carry";
/** The page script needs the plain-video script. Its `detail` is the address of the video. */
export const PLAIN_NEED_EVENT = "tby-video";
/** Its `detail` is a PlainAnswer, a space and the address of the video. */
export const PLAIN_ANSWER_EVENT = "tby-answer";
/** The plain-video script has loaded. The event's `detail` is a PlainScript. */
export const PLAIN_READY_EVENT = "tby-plain";

/**
 * The page script asks whether the document's policies refuse a request for the address in `detail`. The content script
 * cancels the event if they do.
 */
export const REFUSES_EVENT = "tby-refuses";

/** Its `detail` is a RuleSet as JSON text. */
export const RULES_EVENT = "tby-rules";

/** The frame's message to the page that carries the port. */
export const PORT_MESSAGE = "tby-port";

/** Scripts that the background brings into a page when it needs them. */
export const BROUGHT_SCRIPTS = { carry: "carry.js", plain: "plain.js" } as const;
export const FRAME_PATH = "frame.html";
export const TRANSPORT_PATH = "transport.html";
/** Name of the runtime connection over which the transport sends the popup its live figures. */
export const LIVE_CONNECTION = "live";
/** Where storage keeps the id of the installation. The ids of containers have longer keys that begin with this one. */
export const CLIENT_ID_KEY = "clientId";
/** Storage has the time here at which the viewer last gave or took access to a site. */
export const ACCESS_KEY = "accessChangedMs";
