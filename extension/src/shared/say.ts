/**
 * Say: the texts for the viewer, from _locales in the browser's language. An element names its text by `data-say`, its
 * accessible name by `data-say-label` and its tooltip by `data-say-title`.
 */
export type Say = (key: string, ...substitutions: string[]) => string;

export const say: Say = (key, ...substitutions) => chrome.i18n.getMessage(key, substitutions) || key;

export function localize(): void {
  document.documentElement.lang = say("language");
  for (const element of document.querySelectorAll<HTMLElement>("[data-say]"))
    element.textContent = say(element.dataset.say ?? "");
  for (const element of document.querySelectorAll<HTMLElement>("[data-say-label]"))
    element.setAttribute("aria-label", say(element.dataset.sayLabel ?? ""));
  for (const element of document.querySelectorAll<HTMLElement>("[data-say-title]"))
    element.title = say(element.dataset.sayTitle ?? "");
}
