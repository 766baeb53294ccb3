/** Welcome: the page of the first run. Its button opens the options. */
import { localize } from "../shared/say";

localize();
document.getElementById("begin")?.addEventListener("click", () => void chrome.runtime.openOptionsPage());
