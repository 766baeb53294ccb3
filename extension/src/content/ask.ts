import type { ToBackground } from "../shared/runtime";

type Question<Message = ToBackground> = Message extends unknown ? Omit<Message, "to"> : never;

/** The background's answer, or that of `otherwise` if no background answers. */
export function ask(question: Question, otherwise: () => unknown): Promise<unknown> {
  return chrome.runtime.sendMessage({ to: "background", ...question } as ToBackground).catch(otherwise);
}
