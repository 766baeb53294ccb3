/** Plain-video script (MAIN world): brought into a page by the background when its first plain `<video>` begins to load. */
import { PLAIN_READY_EVENT } from "../shared/names";
import { playHeld } from "./player";

document.dispatchEvent(new CustomEvent(PLAIN_READY_EVENT, { detail: playHeld }));
