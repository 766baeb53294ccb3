import http from "node:http";
import net, { type AddressInfo } from "node:net";
import { oneByOne } from "./one-by-one";

type Exchange = [request: http.IncomingMessage, response: http.ServerResponse];

let begun: Exchange[] = [];
const server = http.createServer(
  oneByOne<http.IncomingMessage, http.ServerResponse>((request, response) => begun.push([request, response])),
);
let socket: net.Socket;
let received = "";

beforeEach(async () => {
  begun = [];
  received = "";
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  socket = net.connect((server.address() as AddressInfo).port, "127.0.0.1");
  socket.on("error", () => undefined).on("data", (bytes) => (received += bytes.toString()));
});
afterEach(async () => {
  socket.destroy();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

const pipeline = (count: number): void => {
  for (let at = 0; at < count; at++) socket.write(`GET /${at} HTTP/1.1\r\nHost: x\r\n\r\n`);
};

async function until(isSo: () => boolean): Promise<void> {
  for (let waits = 0; !isSo() && waits < 500; waits++) await new Promise((resolve) => setTimeout(resolve, 10));
  expect(isSo()).toBe(true);
}

test("one by one: a pipelined request begins when the one before has ended", async () => {
  pipeline(3);
  for (let at = 0; at < 3; at++) {
    await until(() => begun.length === at + 1);
    expect(begun[at]![0].url).toBe(`/${at}`);
    begun[at]![1].end(`answer ${at}`);
  }
  await until(() => received.includes("answer 2"));
});

test("one by one: a connection with too many waiting requests is closed, and none of them begins", async () => {
  pipeline(100);
  await until(() => socket.destroyed);
  expect(begun).toHaveLength(1);
});

test("one by one: requests that wait when the connection ends never begin", async () => {
  pipeline(3);
  await until(() => begun.length === 1);
  let isClosed = false;
  begun[0]![1].once("close", () => (isClosed = true));
  socket.destroy();
  await until(() => isClosed);
  expect(begun).toHaveLength(1);
});
