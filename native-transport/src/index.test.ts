/**
 * Tests the door, and the native part if it is built. The conformance suite in test/transports tests sessions that
 * carry messages.
 */
import dgram from "node:dgram";
import {
  drawIceCredentials,
  loadNativeTransport,
  type ChannelHandlers,
  type NativeTransport,
  type RtcAnswer,
  type RtcClient,
  type RtcServer,
  type WebTransportServer,
} from "./index";

const loaded = loadNativeTransport();
const nothing: ChannelHandlers = { onMessage: () => undefined, onWritable: () => undefined, onClosed: () => undefined };

test("webtransport: the door says when the native part is turned off", () => {
  process.env["TRIBUTARY_NATIVE_TRANSPORT"] = "off";
  expect(loadNativeTransport()).toEqual({ native: undefined, reason: "TRIBUTARY_NATIVE_TRANSPORT is off" });
  delete process.env["TRIBUTARY_NATIVE_TRANSPORT"];
});

test("webtransport: the door gives the native part or names what to build", () => {
  if (!loaded.native) expect(loaded.reason).toMatch(/not built \(node native-transport\/build\.mjs builds it/);
  else expect(loaded.native).toBeDefined();
});

(loaded.native ? describe : describe.skip)("webtransport: server and client", () => {
  const native = loaded.native as NativeTransport;
  const servers: WebTransportServer[] = [];
  const client = loaded.native?.client();

  function listen(sessionsMax = 8): WebTransportServer {
    const server = native.listen({
      host: "127.0.0.1",
      port: 0,
      name: "127.0.0.1",
      sessionsMax,
      onSession: () => nothing,
    });
    servers.push(server);
    return server;
  }
  const connect = ({ port, path }: WebTransportServer, certificateHashes: string[], at = path) =>
    client!.connect({
      url: `https://127.0.0.1:${port}${at}`,
      certificateHashes,
      signal: AbortSignal.timeout(5000),
      ...nothing,
    });
  const failure = (attempt: Promise<unknown>): Promise<string> =>
    attempt.then(
      () => "none",
      (error: Error) => error.message,
    );

  afterEach(() => {
    for (const server of servers.splice(0)) server.close();
  });
  afterAll(() => client?.close());

  test("refuses a certificate whose hash was not given", async () => {
    const server = listen();
    expect(await failure(connect(server, ["0".repeat(64)]))).toMatch(/certificate|UnknownIssuer/i);
    expect(await failure(connect(server, ["no hash"]))).toMatch(/not a SHA-256/);
  });

  test("after a rotation the announced hash is accepted and the old hash alone is refused", async () => {
    const server = listen();
    const [shown, next] = server.certificateHashes as [string, string];
    server.rotateCertificate();
    expect(server.certificateHashes[0]).toBe(next);
    (await connect(server, [shown, next])).close("done");
    expect(await failure(connect(server, [shown]))).not.toBe("none");
  });

  test("refuses an unknown path, a session above the limit, and any session while it drains", async () => {
    const server = listen(1);
    expect(await failure(connect(server, server.certificateHashes, "/other"))).not.toBe("none");
    const first = await connect(server, server.certificateHashes);
    expect(await failure(connect(server, server.certificateHashes))).not.toBe("none");
    first.close("done");
    server.drain();
    expect(await failure(connect(server, server.certificateHashes))).not.toBe("none");
  });

  test("names a port that is taken", async () => {
    const socket = dgram.createSocket("udp4");
    await new Promise<void>((resolve) => socket.bind(0, "127.0.0.1", resolve));
    const { port } = socket.address();
    expect(() =>
      native.listen({ host: "127.0.0.1", port, name: "x", sessionsMax: 1, onSession: () => nothing }),
    ).toThrow(`127.0.0.1:${port}`);
    socket.close();
  });
});

(loaded.native ? describe : describe.skip)("webrtc: server and client", () => {
  const native = loaded.native as NativeTransport;
  let server: RtcServer;
  let client: RtcClient;

  beforeAll(() => {
    server = native.listenRtc("127.0.0.1", 0);
    client = native.rtcClient();
  });
  afterAll(() => {
    client.close();
    server.close();
  });

  /** `change`: the parts of the answer that differ for the client. */
  const connect = (change: (answer: RtcAnswer) => Partial<RtcAnswer>, signal = AbortSignal.timeout(5000)) =>
    client.connect({
      ...nothing,
      signal,
      sendOffer: ({ fingerprint, ...own }) => {
        const credentials = drawIceCredentials();
        const { fingerprint: shown } = server.accept({ ...credentials, fingerprint, onSession: () => nothing });
        const candidates = [{ address: "127.0.0.1", port: server.port }];
        const answer = { ...credentials, fingerprint: shown, candidates };
        expect(own.ufrag.length).toBeGreaterThan(3);
        return Promise.resolve({ ...answer, ...change(answer) });
      },
    });
  const failure = (attempt: Promise<unknown>): Promise<string> =>
    attempt.then(
      () => "none",
      (error: Error) => error.message,
    );

  test("uses the first address that answers", async () => {
    const channel = await connect(({ candidates }) => ({
      candidates: [{ address: "127.0.0.1", port: 9 }, { address: "::1", port: 9 }, ...candidates],
    }));
    expect(channel.send(new Uint8Array(10))).toBe(true);
    channel.close("done");
  });

  test("refuses a certificate that was not announced", async () => {
    expect(await failure(connect(() => ({ fingerprint: new Uint8Array(32) })))).toMatch(/not the one it announced/);
  });

  test("does not connect to an end that signs with another password", async () => {
    const reason = new Error("enough");
    const stop = new AbortController();
    setTimeout(() => stop.abort(reason), 500);
    await expect(connect(() => ({ password: "another" }), stop.signal)).rejects.toBe(reason);
  });

  test("ends the attempt with the reason when the answer is missing or wrong", async () => {
    const refused = new Error("refused");
    await expect(client.connect({ ...nothing, sendOffer: () => Promise.reject(refused) })).rejects.toBe(refused);
    expect(await failure(connect(() => ({ fingerprint: new Uint8Array(3) })))).toMatch(/must be 32 bytes, got 3/);
    expect(await failure(connect(() => ({ candidates: [{ address: "name", port: 1 }] })))).toMatch(/IP address/);
  });
});
