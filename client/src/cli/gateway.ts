/** `tributary gateway`: serves any player on this machine over the proxies. */
import { Command, InvalidArgumentError } from "commander";
import { GATEWAY_PORT_DEFAULT, startGateway } from "../gateway";
import {
  addRouteOptions,
  addTrustOptions,
  each,
  trustAsTold,
  wholeNumber,
  type RouteWords,
  type TrustWords,
} from "./options";
import { RevisionsFile } from "./revisions-file";
import { stopped } from "./signals";
import { print, say } from "./terminal";

interface GatewayWords extends RouteWords, TrustWords {
  port: number;
  host: string;
  privateHost: string[];
}

const EXAMPLE = `
A player opens https://example.org/film.m3u8 as http://127.0.0.1:${GATEWAY_PORT_DEFAULT}/https/example.org/film.m3u8:
  mpv http://127.0.0.1:${GATEWAY_PORT_DEFAULT}/https/example.org/film.m3u8
`;

export function gatewayCommand(): Command {
  const command = new Command("gateway")
    .description("let any player (mpv, VLC, ffmpeg, Kodi) play through the proxies")
    .option("--port <n>", "where it listens; 0: any free port", portNumber, GATEWAY_PORT_DEFAULT)
    .option("--host <address>", "where it listens; another address than loopback lets other machines in", "127.0.0.1")
    .option("--private-host <host>", "with --host: a host of a private network that may be asked", each, []);
  return addTrustOptions(addRouteOptions(command)).addHelpText("after", EXAMPLE).action(serveUntilStopped);
}

async function serveUntilStopped(given: GatewayWords): Promise<void> {
  const { origo: origoUrl, record: reportRecords, privateHost: privateHosts, cacert, insecure, ...words } = given;
  await trustAsTold({ ...(cacert === undefined ? {} : { cacert }), ...(insecure ? { insecure } : {}) });
  const seenRevisions = new RevisionsFile();
  const gateway = await startGateway({ ...words, origoUrl, reportRecords, privateHosts, seenRevisions });
  if (gateway.isPublic)
    say(
      "Other machines can reach this gateway over plain HTTP. Whoever knows its address can fetch any site through " +
        "it, so keep the address secret. Hosts of private networks are refused, except those of --private-host.\n",
    );
  print(`The gateway is ${gateway.url}/ (open it in a browser to see what plays). Ctrl-C ends it.\n`);
  await new Promise<void>((resolve) => {
    if (stopped.aborted) resolve();
    stopped.addEventListener("abort", () => resolve());
  });
  await gateway.close();
}

function portNumber(text: string): number {
  const port = wholeNumber(text);
  if (port > 65_535) throw new InvalidArgumentError("Allowed: a port, 0..65535.");
  return port;
}
