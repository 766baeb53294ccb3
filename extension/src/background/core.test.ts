import type { SettingsAnswer, ToBackground } from "../shared/runtime";

type Listener = (...args: unknown[]) => unknown;
const listeners = { message: [] as Listener[], changed: [] as Listener[] };
const stored: Record<string, unknown> = {};
const sent: { to: string; clientId?: string }[] = [];
const settle = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 10));

beforeAll(async () => {
  const deaf = { addListener: () => undefined };
  const local = {
    get: (keys: string | string[]) =>
      Promise.resolve(Object.fromEntries([keys].flat().flatMap((key) => (key in stored ? [[key, stored[key]]] : [])))),
    set: (items: object) => Promise.resolve(void Object.assign(stored, items)),
  };
  const chrome = {
    runtime: {
      onMessage: { addListener: (listener: Listener) => listeners.message.push(listener) },
      onInstalled: deaf,
      onStartup: deaf,
      getURL: (path: string) => `chrome-extension://own/${path}`,
      getManifest: () => ({ content_scripts: [{}] }),
      sendMessage: (message: { to: string }) => Promise.resolve(void sent.push(message)),
    },
    storage: {
      local,
      session: { get: () => Promise.resolve({}) },
      onChanged: { addListener: (listener: Listener) => listeners.changed.push(listener) },
    },
    permissions: { onAdded: deaf, onRemoved: deaf },
    webRequest: { onResponseStarted: deaf },
    action: { setBadgeText: () => Promise.resolve(), setBadgeBackgroundColor: () => Promise.resolve() },
    extension: { inIncognitoContext: false },
  };
  Object.assign(globalThis, { chrome, fetch: () => Promise.reject(new TypeError("no defaults")) });
  await import("./core");
});

function ask(sender: object = {}): Promise<SettingsAnswer> {
  const question: ToBackground = { to: "background", type: "settings" };
  return new Promise((resolve) => listeners.message.forEach((hear) => hear(question, sender, resolve)));
}

test("core: two contexts that ask at once for the first id get the same id", async () => {
  const answers = await Promise.all([ask(), ask()]);
  expect(answers.map(({ clientId }) => clientId)).toEqual([stored.clientId, stored.clientId]);
});

test("core: each container has its own id, which stays; a private window's is used once", async () => {
  const inTab = (tab: object): Promise<SettingsAnswer> => ask({ tab, url: "chrome-extension://own/frame.html" });
  const tabs = ["firefox-default", "firefox-container-1", "firefox-container-2"].map((cookieStoreId) => ({
    cookieStoreId,
  }));
  const idsOf = async (): Promise<string[]> =>
    (await Promise.all([...tabs, { incognito: true, cookieStoreId: "firefox-private" }].map(inTab))).map(
      ({ clientId }) => clientId,
    );
  const [before, after] = [await idsOf(), await idsOf()];
  expect(before[0]).toBe(stored.clientId);
  expect(new Set([...before, ...after]).size).toBe(5);
  expect(after.slice(0, 3)).toEqual(before.slice(0, 3));
  expect(Object.values(stored)).not.toContain(before[3]);
});

test("core: the transport hears of a new id if storage loses the old one, not of the first id", async () => {
  const { clientId } = await ask();
  const change = (newValue?: unknown): void =>
    listeners.changed.forEach((hear) => hear({ clientId: { newValue } }, "local"));
  sent.length = 0;
  change(clientId);
  await settle();
  expect(sent).toEqual([]);
  delete stored.clientId;
  change();
  await settle();
  expect(sent).toMatchObject([{ to: "transport", clientId: stored.clientId }]);
  expect(stored.clientId).not.toBe(clientId);
});
