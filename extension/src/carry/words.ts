/** Words: what each browser says in errors that a page may show or match, and what it leaves after an error. */

import type { StateRule } from "../shared/carry";
import { isOneOf, options, type Table } from "../shared/primordials";

interface Words {
  /** A body that breaks off: to who reads the stream, and to who reads the whole body. */
  inStream: string;
  inWhole: string;
  /** A request without an answer. */
  noAnswer: string;
  /** Why the state of an XMLHttpRequest forbids something. `isSending` says that it has sent and has no head yet. */
  forbids: (rule: StateRule, isSending: boolean) => string;
  /** Whether `response` is an empty buffer, and not null, after an error of an XMLHttpRequest. */
  hasEmptyBuffer: boolean;
}

const PROPERTIES: readonly StateRule[] = ["withCredentials", "responseType"];

const LOADING_IN_CHROMIUM: Readonly<Table<string>> = options({
  withCredentials: "The value may only be set if the object's state is UNSENT or OPENED.",
  responseType: "The response type cannot be set if the object's state is LOADING or DONE.",
  overrideMimeType: "MimeType cannot be overridden when the state is LOADING or DONE.",
} satisfies Partial<Record<StateRule, string>>);

const CHROMIUM: Words = {
  inStream: "network error",
  inWhole: "Failed to fetch",
  noAnswer: "Failed to fetch",
  forbids: (rule) => {
    const doing = isOneOf(PROPERTIES, rule) ? `set the '${rule}' property` : `execute '${rule}'`;
    const why = LOADING_IN_CHROMIUM[rule] ?? "The object's state must be OPENED.";
    return `Failed to ${doing} on 'XMLHttpRequest': ${why}`;
  },
  hasEmptyBuffer: false,
};

const LOADING_IN_FIREFOX: Readonly<Table<string>> = options({
  responseType: "Cannot set 'responseType' property",
  overrideMimeType: "Cannot call 'overrideMimeType()'",
} satisfies Partial<Record<StateRule, string>>);

const FIREFOX: Words = {
  inStream: "Error in input stream",
  inWhole: "Content-Length header of network response exceeds response Body.",
  noAnswer: "NetworkError when attempting to fetch resource.",
  forbids: (rule, isSending) => {
    const loading = LOADING_IN_FIREFOX[rule];
    const state =
      isSending || rule === "withCredentials"
        ? "XMLHttpRequest must not be sending."
        : "XMLHttpRequest state must be OPENED.";
    const why =
      loading === undefined
        ? state
        : `${loading} on XMLHttpRequest after 'send()' (when its state is LOADING or DONE).`;
    return `XMLHttpRequest.${rule}${isOneOf(PROPERTIES, rule) ? " setter" : ""}: ${why}`;
  },
  hasEmptyBuffer: true,
};

export const WORDS: Words = "InternalError" in window ? FIREFOX : CHROMIUM;
