/** Content script in Chromium: the frame only passes a port on, so it goes once the port works. */
import { startContent } from "./content";

startContent({ keepFrame: false });
