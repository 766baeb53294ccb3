/**
 * A stand-in for Origo as a proxy's link sees it: it lets every proxy in under the id `p`, gives it the key that signs
 * grants, and notes the objects that the proxy reports.
 */
import { generateKeyPairSync, randomBytes, sign } from "node:crypto";
import { createServer } from "node:http";
import { Server } from "socket.io";

const { privateKey, publicKey } = generateKeyPairSync("ed25519");
const KEYS = { k: publicKey.export({ type: "spki", format: "pem" }).toString() };

const part = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");

/** A grant of an object for an hour. */
export function grantOf(object) {
  const iat = Math.floor(Date.now() / 1000);
  const claims = { iss: "origo", aud: ["p"], object, iat, exp: iat + 3600 };
  const text = `${part({ alg: "EdDSA", typ: "JWT", kid: "k" })}.${part(claims)}`;
  return `${text}.${sign(null, Buffer.from(text), privateKey).toString("base64url")}`;
}

/** `unwanted`: of the reported objects, those that no publication has. */
export async function startOrigo(unwanted = () => []) {
  const http = createServer();
  const io = new Server(http, { serveClient: false, transports: ["websocket"], maxHttpBufferSize: 16_384 });
  const seen = { objects: new Set(), reports: [], served: new Map(), status: undefined };
  io.of("/proxies").on("connection", (socket) => {
    socket.on("hello", (_hello, _proof, answer) => {
      answer({ id: "p" });
      socket.emit("control", { draining: false, version: 1, values: {}, keys: KEYS, nowMs: Date.now() });
    });
    socket.on("status", (status, answer) => {
      seen.status = status;
      answer({ id: "p" });
    });
    socket.on("objects", (report, answer) => {
      seen.reports.push(report);
      if (report.isFirst) seen.objects.clear();
      for (const id of report.added) seen.objects.add(id);
      for (const id of report.removed) seen.objects.delete(id);
      answer({ unwanted: unwanted(report.added) });
    });
    socket.on("served", ({ id, served }, answer) => {
      for (const { object, bytes } of served) seen.served.set(object, (seen.served.get(object) ?? 0) + bytes);
      answer({ id });
    });
    socket.emit("challenge", randomBytes(24).toString("base64url"));
  });
  await new Promise((resolve) => http.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${http.address().port}`,
    seen,
    forget: (objects) => io.of("/proxies").emit("forget", { objects }),
    close: () => new Promise((resolve) => io.close(() => resolve())),
  };
}
