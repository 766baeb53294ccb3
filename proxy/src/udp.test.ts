import dgram from "node:dgram";
import { encodeUdpPacket, parseUdpPacket, type UdpPacket } from "@tributary/protocol";
import { UdpEdge } from "./udp";

const NONCE = Uint8Array.from([1, 2, 3, 4, 5, 6, 7, 8]);
const edges: UdpEdge[] = [];
const sockets: dgram.Socket[] = [];
afterEach(() => {
  for (const edge of edges.splice(0)) edge.close();
  for (const socket of sockets.splice(0)) socket.close();
});

async function setup(sessionsMax = 4) {
  let nowMs = 0;
  const sessions: string[] = [];
  const edge = await UdpEdge.listen({
    host: "127.0.0.1",
    port: 0,
    sessionsMax,
    nowMs: () => nowMs,
    onSession: () => {
      const id = `s${sessions.length}`;
      sessions.push(`${id} opened`);
      return {
        handleMessage: (bytes) => void sessions.push(`${id} ${Buffer.from(bytes).toString()}`),
        handleWritable: () => undefined,
        handleClosed: (reason) => void sessions.push(`${id} ${reason}`),
      };
    },
  });
  edges.push(edge);
  return { edge, sessions, later: (ms: number) => void (nowMs += ms) };
}

async function stranger(edge: UdpEdge) {
  const socket = dgram.createSocket("udp4");
  sockets.push(socket);
  await new Promise<void>((resolve) => socket.bind(0, "127.0.0.1", resolve));
  const answers: UdpPacket[] = [];
  socket.on("message", (bytes) => answers.push(parseUdpPacket(bytes)!));
  /** Sends a packet and returns the answer. Undefined when there is no answer. */
  const ask = async (packet: UdpPacket): Promise<UdpPacket | undefined> => {
    const before = answers.length;
    socket.send(encodeUdpPacket(packet), edge.port, "127.0.0.1");
    for (let tries = 0; tries < 100 && answers.length === before; tries++)
      await new Promise((resolve) => setTimeout(resolve, 2));
    return answers[before];
  };
  return { ask };
}

type Stranger = Awaited<ReturnType<typeof stranger>>;
const cookieOf = async ({ ask }: Stranger): Promise<Uint8Array> => {
  const answer = await ask({ type: "hello", nonce: NONCE });
  if (answer?.type !== "cookie") throw new Error("no cookie");
  return Uint8Array.from(answer.cookie);
};

test("udp: a client that sends the cookie back gets one session, also if it repeats the packet", async () => {
  const { edge, sessions } = await setup();
  const client = await stranger(edge);
  const cookie = await cookieOf(client);
  expect([sessions, edge.sessionCount]).toEqual([[], 0]);
  const opened = await client.ask({ type: "open", nonce: NONCE, cookie });
  const again = await client.ask({ type: "open", nonce: NONCE, cookie });
  expect([opened?.type, again]).toEqual(["opened", opened]);
  expect([sessions, edge.sessionCount]).toEqual([["s0 opened"], 1]);
});

test("udp: a cookie is valid from its own address and for 10 to 20 s", async () => {
  const { edge, later } = await setup();
  const [client, thief] = [await stranger(edge), await stranger(edge)];
  const cookie = await cookieOf(client);
  expect(await thief.ask({ type: "open", nonce: NONCE, cookie })).toBeUndefined();
  later(20_000);
  expect(await client.ask({ type: "open", nonce: NONCE, cookie })).toBeUndefined();
  later(-10_000);
  expect((await client.ask({ type: "open", nonce: NONCE, cookie }))?.type).toBe("opened");
});

test("udp: messages need the token and the address, and a close packet ends the session", async () => {
  const { edge, sessions } = await setup();
  const [client, thief] = [await stranger(edge), await stranger(edge)];
  const opened = await client.ask({ type: "open", nonce: NONCE, cookie: await cookieOf(client) });
  const token = Uint8Array.from((opened as { token: Uint8Array }).token);
  const datagram = Buffer.from("hello");
  await thief.ask({ type: "message", token, datagram });
  await client.ask({ type: "message", token: NONCE, datagram });
  await client.ask({ type: "message", token, datagram });
  await thief.ask({ type: "close", token });
  await client.ask({ type: "close", token });
  expect(sessions).toEqual(["s0 opened", "s0 hello", "s0 closed by the client"]);
  expect(edge.sessionCount).toBe(0);
});

test("udp: a session over the limit is refused, and so is any session while draining", async () => {
  const { edge } = await setup(1);
  const [first, second] = [await stranger(edge), await stranger(edge)];
  expect((await first.ask({ type: "open", nonce: NONCE, cookie: await cookieOf(first) }))?.type).toBe("opened");
  expect((await second.ask({ type: "open", nonce: NONCE, cookie: await cookieOf(second) }))?.type).toBe("refused");
  const other = await setup();
  other.edge.drain();
  const late = await stranger(other.edge);
  expect((await late.ask({ type: "open", nonce: NONCE, cookie: await cookieOf(late) }))?.type).toBe("refused");
});
