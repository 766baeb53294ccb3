/** Background in Firefox (event page): the transports live in the pages' frames, so only the core is needed. */
import "./core";
