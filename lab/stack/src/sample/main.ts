/**
 * The process of the sample origin. Environment: PORT (0: any free one), HOST (127.0.0.1). Prints one JSON line
 * {"ready":true,"url":...} when it listens. SIGTERM and SIGINT end it.
 */
import type { AddressInfo } from "node:net";
import { createSampleOrigin } from "./origin";

const host = process.env["HOST"] || "127.0.0.1";
const port = Number(process.env["PORT"] || "0");
if (!Number.isInteger(port) || port < 0 || port > 65_535) {
  console.error(`PORT must be a whole number from 0 to 65535, got "${process.env["PORT"]}"`);
  process.exit(2);
}

const server = createSampleOrigin().app.listen(port, host, (error?: Error) => {
  if (error) {
    console.error(`sample origin cannot listen on ${host}:${port}: ${error.message}`);
    process.exit(1);
  }
  const bound = (server.address() as AddressInfo).port;
  console.log(JSON.stringify({ ready: true, url: `http://${host}:${bound}` }));
});

for (const signal of ["SIGTERM", "SIGINT"] as const) {
  process.on(signal, () => {
    server.close(() => process.exit(0));
    server.closeAllConnections();
  });
}
