/** Welcome: the page of the first run; its button leads to the options. */
import { localize } from "../shared/say";

localize();
document.getElementById("begin")?.addEventListener("click", () => void chrome.runtime.openOptionsPage());
