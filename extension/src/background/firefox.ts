/** Background in Firefox (event page): the transports run in the pages' frames, so only the core is needed. */
import "./core";
