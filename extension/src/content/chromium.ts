/** Content script in Chromium: the frame only hands over a port, so it is removed once the port works. */
import { startContent } from "./content";

startContent({ keepFrame: false });
