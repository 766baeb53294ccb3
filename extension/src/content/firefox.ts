/** Content script in Firefox: the transport lives in the frame, so it stays as long as the page. */
import { startContent } from "./content";

startContent({ keepFrame: true });
