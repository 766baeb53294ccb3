/** The site of the videos, as a process. It answers ranges of whole groups. In: PORT, HOST. Out: one ready line. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { GROUP_BYTES, GROUPS_PER_VIDEO, groupOf } from "./content";

const HOST = process.env["HOST"] ?? "127.0.0.1";

const server = createServer((request, response) => {
  const channel = /^\/channel\/(\d+)\.mp4$/.exec(request.url ?? "")?.[1];
  const [, first, last] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? "") ?? [];
  const group = Number(first) / GROUP_BYTES;
  if (channel === undefined || !Number.isInteger(group) || Number(last) + 1 - Number(first) !== GROUP_BYTES) {
    response.writeHead(400).end();
    return;
  }
  response.writeHead(206, {
    "content-type": "video/mp4",
    "content-length": GROUP_BYTES,
    "content-range": `bytes ${first}-${last}/${GROUP_BYTES * GROUPS_PER_VIDEO}`,
    "cache-control": "public, max-age=3600",
    etag: `"${channel}"`,
  });
  response.end(groupOf(Number(channel), group));
});
server.keepAliveTimeout = 60_000;
server.listen(Number(process.env["PORT"] ?? 0), HOST, () => {
  const { port } = server.address() as AddressInfo;
  process.stdout.write(`${JSON.stringify({ ready: true, url: `http://${HOST}:${port}` })}\n`);
});
process.once("SIGTERM", () => process.exit(0));
