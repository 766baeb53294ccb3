import type { SettingsAnswer, ToTransportContext } from "../shared/runtime";
import { BUILT_IN } from "../shared/settings";

const made: { clientId: string; isClosed: boolean }[] = [];
const first: SettingsAnswer = {
  settings: { ...BUILT_IN, sendRecords: true },
  clientId: "first",
  isPrivate: false,
  mayUseUdp: true,
};
const settle = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 10));
let tell: (message: ToTransportContext, sender: object) => void;
let admitPort: (port: MessagePort, pageOrigin: string) => void;

beforeAll(async () => {
  const createBrowserClient = ({ clientId }: { clientId: string }): object => {
    const client = { clientId, isClosed: false };
    made.push(client);
    return {
      live: { proxies: [] },
      check: () => undefined,
      prepare: () => Promise.resolve(),
      close: () => Promise.resolve(void (client.isClosed = true)),
    };
  };
  jest.doMock("@tributary/client/browser", () => ({ createBrowserClient, randomUuid: () => "an id" }));
  const runtime = {
    getURL: (path: string) => path,
    sendMessage: () => Promise.resolve(first),
    onMessage: { addListener: (listener: typeof tell) => void (tell = listener) },
    onConnect: { addListener: () => undefined },
  };
  Object.assign(globalThis, { chrome: { runtime }, fetch: () => Promise.reject(new TypeError("no Origo here")) });
  ({ admitPort } = await import("./hub"));
});

async function openPage(): Promise<void> {
  const port = {
    postMessage: () => undefined,
    addEventListener: () => undefined,
    close: () => undefined,
    onmessage: null,
  };
  admitPort(port as unknown as MessagePort, "https://page.example");
  await settle();
}

test("hub: a reset replaces the client by one with the new id, and equal settings change nothing", async () => {
  await openPage();
  tell({ to: "transport", type: "settings", ...first }, {});
  expect(made).toEqual([{ clientId: "first", isClosed: false }]);
  tell({ to: "transport", type: "settings", ...first, clientId: "second" }, {});
  await openPage();
  expect(made).toEqual([
    { clientId: "first", isClosed: true },
    { clientId: "second", isClosed: false },
  ]);
});
