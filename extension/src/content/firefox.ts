/** Content script in Firefox: the frame is the transport, so it stays for the life of the page. */
import { startContent } from "./content";

startContent({ keepFrame: true });
