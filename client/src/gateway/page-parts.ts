/** The style and the script of the gateway's page, and a tag that makes text safe in HTML. No I/O. */
import { createHash } from "node:crypto";

export class Html {
  constructor(readonly text: string) {}
}

/** Joins HTML. Everything but `Html` is text, and is escaped. */
export function markup(parts: TemplateStringsArray, ...values: (Html | readonly Html[] | string | number)[]): Html {
  const shown = values.map((value) =>
    value instanceof Html ? value.text : Array.isArray(value) ? value.map(({ text }) => text).join("") : escaped(value),
  );
  return new Html(String.raw({ raw: parts }, ...shown));
}

const ENTITIES: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

function escaped(value: unknown): string {
  return String(value).replace(/[&<>"']/g, (character) => ENTITIES[character]!);
}

export const STYLE = `
:root {
  color-scheme: light dark;
  --ground: light-dark(#f5f7f8, #0d1519);
  --card: light-dark(#ffffff, #152127);
  --ink: light-dark(#0f1c22, #e7eff2);
  --soft: light-dark(#55656d, #9db0b8);
  --line: light-dark(#dfe6e9, #263840);
  --water: light-dark(#0f766e, #2dd4bf);
  --bad: light-dark(#b3261e, #ff9a92);
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink); font: 15px/1.5 system-ui, "Segoe UI", sans-serif; }
main { max-width: 1040px; margin: 0 auto; padding: 24px 20px 48px; display: grid; gap: 20px; }
h1 { margin: 0; font-size: 1.4rem; font-weight: 650; }
h2 { margin: 0 0 8px; font-size: 1rem; font-weight: 600; }
p { margin: 0; color: var(--soft); }
#offline { color: var(--bad); font-weight: 600; }
#now { display: grid; gap: 20px; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 16px; min-width: 0; }
form { display: flex; flex-wrap: wrap; gap: 8px; align-items: end; }
label { flex: 1 1 320px; display: grid; gap: 4px; color: var(--soft); }
input { font: inherit; width: 100%; min-width: 0; padding: 8px 10px; color: var(--ink); background: var(--ground);
  border: 1px solid var(--line); border-radius: 8px; }
button { font: inherit; padding: 8px 16px; color: var(--card); background: var(--water); border: 0; border-radius: 8px;
  cursor: pointer; }
:focus-visible { outline: 2px solid var(--water); outline-offset: 2px; }
pre { margin: 12px 0 0; padding: 10px 12px; background: var(--ground); border-radius: 8px; white-space: pre-wrap;
  overflow-wrap: anywhere; font: 13px/1.6 ui-monospace, monospace; }
table { width: 100%; border-collapse: collapse; font-variant-numeric: tabular-nums; }
th { text-align: start; font-weight: 500; color: var(--soft); }
th, td { padding: 6px 12px 6px 0; border-bottom: 1px solid var(--line); vertical-align: top; }
tr:last-child td { border-bottom: 0; }
td { overflow-wrap: break-word; }
.long { overflow-wrap: anywhere; }
.number { text-align: end; white-space: nowrap; }
.fault { color: var(--bad); }
@media (max-width: 640px) {
  thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
  table, tbody, tr, td { display: block; }
  tr { padding: 8px 0; border-bottom: 1px solid var(--line); }
  tr:last-child { border-bottom: 0; }
  section[aria-labelledby="latest-requests"] tr:nth-child(n + 7) { display: none; }
  td { display: flex; justify-content: space-between; gap: 16px; padding: 2px 0; border: 0; text-align: end;
    overflow-wrap: anywhere; }
  td::before { content: attr(data-label); color: var(--soft); text-align: start; white-space: nowrap; }
}
`;

const REFRESH_MS = 2000;

/** Replaces the part that changes. A part that is the same stays, so that a selection of its text does too. */
export const SCRIPT = `
const now = document.getElementById("now");
const offline = document.getElementById("offline");
let shown = "";
async function refresh() {
  try {
    const text = await (await fetch("now")).text();
    if (text !== shown) now.innerHTML = shown = text;
    offline.hidden = true;
  } catch {
    offline.hidden = false;
  }
  setTimeout(refresh, ${REFRESH_MS});
}
setTimeout(refresh, ${REFRESH_MS});
`;

const sha256 = (text: string): string => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

/** Only this style and this script run in the page, and no page may show it in a frame. */
export const PAGE_POLICY = [
  "default-src 'none'",
  `style-src ${sha256(STYLE)}`,
  `script-src ${sha256(SCRIPT)}`,
  "connect-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join("; ");
