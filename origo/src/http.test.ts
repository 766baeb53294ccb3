/** Tests how long a request may take to arrive, over real connections. */
import { once } from "node:events";
import { createServer, request, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import express from "express";
import { endpoint, failure, limitTime, mount } from "./http";

const MS_MAX = 200;
let server: Server;

beforeAll(async () => {
  const app = express();
  const take = { method: "post", access: "open", summary: "counts bytes", answer: "text/plain" } as const;
  const handle = async ({ request: pieces }: { request: AsyncIterable<Buffer> }): Promise<string> => {
    let bytes = 0;
    for await (const piece of pieces) bytes += piece.length;
    return String(bytes);
  };
  mount(
    app,
    [endpoint({ ...take, path: "/quick", handle }), endpoint({ ...take, path: "/slow", requestMsMax: 20_000, handle })],
    { admit: () => Promise.resolve("") },
  );
  app.use(failure(() => undefined));
  server = createServer({ requestTimeout: 0 }, app)
    .prependListener("request", (incoming) => limitTime(incoming, MS_MAX))
    .listen(0, "127.0.0.1");
  await once(server, "listening");
});
afterAll(() => server.close());

/** Sends two bytes with a pause between them. */
const send = (path: string, pauseMs: number): Promise<string> =>
  new Promise((resolve, reject) => {
    const { port } = server.address() as AddressInfo;
    const upload = request({ host: "127.0.0.1", port, path, method: "POST", agent: false }, (response) => {
      let text = "";
      response.on("data", (data: Buffer) => (text += data.toString())).on("end", () => resolve(text));
    });
    upload.on("error", reject);
    upload.write("a");
    setTimeout(() => upload.end("b"), pauseMs);
  });

test("http: a slow request loses its connection, unless its endpoint allows more time", async () => {
  expect(await send("/quick", 0)).toBe("2");
  await expect(send("/quick", 5 * MS_MAX)).rejects.toThrow();
  expect(await send("/slow", 5 * MS_MAX)).toBe("2");
});

test("http: an answer may take longer than the time limit of the request", async () => {
  const slow = express().get("/", (_request, response) => void setTimeout(() => response.send("late"), 3 * MS_MAX));
  const other = createServer(slow)
    .prependListener("request", (incoming) => limitTime(incoming, MS_MAX))
    .listen(0, "127.0.0.1");
  await once(other, "listening");
  expect(await (await fetch(`http://127.0.0.1:${(other.address() as AddressInfo).port}/`)).text()).toBe("late");
  other.closeAllConnections();
  other.close();
});
