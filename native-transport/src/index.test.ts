/** The door, with the native part where it is built; carrying messages is the conformance suite's business (lab). */
import dgram from "node:dgram";
import {
  drawRtcName,
  loadNativeTransport,
  type ChannelHandlers,
  type NativeTransport,
  type RtcCaller,
  type RtcProxy,
  type RtcServer,
  type WebTransportServer,
} from "./index";

const loaded = loadNativeTransport();
const nothing: ChannelHandlers = { onMessage: () => undefined, onWritable: () => undefined, onClosed: () => undefined };

test("webtransport: where the native part is switched off, the door says why there is none", () => {
  process.env["TRIBUTARY_NATIVE_TRANSPORT"] = "off";
  expect(loadNativeTransport()).toEqual({ native: undefined, reason: "TRIBUTARY_NATIVE_TRANSPORT is off" });
  delete process.env["TRIBUTARY_NATIVE_TRANSPORT"];
});

test("webtransport: it is there, or the door names what to build", () => {
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

  test("a certificate whose hash was not given is refused", async () => {
    const server = listen();
    expect(await failure(connect(server, ["0".repeat(64)]))).toMatch(/certificate|UnknownIssuer/i);
    expect(await failure(connect(server, ["no hash"]))).toMatch(/not a SHA-256/);
  });

  test("after a rotation, who knows the hash that was announced gets in, who knows the old one alone does not", async () => {
    const server = listen();
    const [shown, next] = server.certificateHashes as [string, string];
    server.rotateCertificate();
    expect(server.certificateHashes[0]).toBe(next);
    (await connect(server, [shown, next])).close("done");
    expect(await failure(connect(server, [shown]))).not.toBe("none");
  });

  test("a path that is not the server's, a session too many and a server that drains are refused", async () => {
    const server = listen(1);
    expect(await failure(connect(server, server.certificateHashes, "/other"))).not.toBe("none");
    const first = await connect(server, server.certificateHashes);
    expect(await failure(connect(server, server.certificateHashes))).not.toBe("none");
    first.close("done");
    server.drain();
    expect(await failure(connect(server, server.certificateHashes))).not.toBe("none");
  });

  test("a port that is taken is named", async () => {
    const socket = dgram.createSocket("udp4");
    await new Promise<void>((resolve) => socket.bind(0, "127.0.0.1", resolve));
    const { port } = socket.address();
    expect(() =>
      native.listen({ host: "127.0.0.1", port, name: "x", sessionsMax: 1, onSession: () => nothing }),
    ).toThrow(`127.0.0.1:${port}`);
    socket.close();
  });
});

(loaded.native ? describe : describe.skip)("webrtc: server and caller", () => {
  const native = loaded.native as NativeTransport;
  let server: RtcServer;
  let caller: RtcCaller;

  beforeAll(() => {
    server = native.listenRtc("127.0.0.1", 0);
    caller = native.rtcCaller();
  });
  afterAll(() => {
    caller.close();
    server.close();
  });

  /** `change`: what the caller is told otherwise. */
  const connect = (change: (proxy: RtcProxy) => Partial<RtcProxy>, signal = AbortSignal.timeout(5000)) =>
    caller.connect({
      ...nothing,
      signal,
      exchange: ({ fingerprint, ...own }) => {
        const name = drawRtcName();
        const shown = server.accept({ ...name, fingerprint, onSession: () => nothing });
        const proxy = { ...name, fingerprint: shown, candidates: [{ address: "127.0.0.1", port: server.port }] };
        expect(own.ufrag.length).toBeGreaterThan(3);
        return Promise.resolve({ ...proxy, ...change(proxy) });
      },
    });
  const failure = (attempt: Promise<unknown>): Promise<string> =>
    attempt.then(
      () => "none",
      (error: Error) => error.message,
    );

  test("the first address that answers is taken", async () => {
    const channel = await connect(({ candidates }) => ({
      candidates: [{ address: "127.0.0.1", port: 9 }, { address: "::1", port: 9 }, ...candidates],
    }));
    expect(channel.send(new Uint8Array(10))).toBe(true);
    channel.close("done");
  });

  test("a certificate that is not the one announced is refused", async () => {
    expect(await failure(connect(() => ({ fingerprint: new Uint8Array(32) })))).toMatch(/not the one it announced/);
  });

  test("an end that does not sign with the password is not taken for the proxy", async () => {
    const reason = new Error("enough");
    const stop = new AbortController();
    setTimeout(() => stop.abort(reason), 500);
    await expect(connect(() => ({ password: "another" }), stop.signal)).rejects.toBe(reason);
  });

  test("what cannot be exchanged, or is no answer, ends the attempt with the reason", async () => {
    const refused = new Error("refused");
    await expect(caller.connect({ ...nothing, exchange: () => Promise.reject(refused) })).rejects.toBe(refused);
    expect(await failure(connect(() => ({ fingerprint: new Uint8Array(3) })))).toMatch(/must be 32 bytes, got 3/);
    expect(await failure(connect(() => ({ candidates: [{ address: "name", port: 1 }] })))).toMatch(/IP address/);
  });
});
