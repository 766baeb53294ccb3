/**
 * The rival that needs nobody: the origin's deterministic bytes over HTTP/2, one stream, on the origin's own link.
 * Without TLS (RFC 9113 section 3.3, prior knowledge), so its set-up is a round trip shorter than that of any
 * browser's.
 *
 *     node http2Origin.js PORT      prints one line when it listens; ends with its standard input
 */
import { createServer } from "node:http2";
import { sizeBytes } from "@tributary/lab-stack";

function main([port = ""]: readonly string[]): void {
  const bodies = new Map<number, Uint8Array>();
  const server = createServer();
  server.on("stream", (stream, headers) => {
    const bytes = Number(/^\/(\d+)$/.exec(headers[":path"] ?? "")?.[1]);
    if (!Number.isSafeInteger(bytes)) return stream.respond({ ":status": 404 }, { endStream: true });
    let body = bodies.get(bytes);
    if (!body) bodies.set(bytes, (body = sizeBytes(0, bytes)));
    stream.respond({ ":status": 200, "content-length": bytes });
    stream.end(body);
  });
  server.listen(Number(port), () => console.log("listening"));
  process.stdin.resume().once("end", () => process.exit(0));
}

main(process.argv.slice(2));
