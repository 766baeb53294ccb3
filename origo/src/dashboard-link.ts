/**
 * Dashboard link: the socket.io namespace "/dashboard". It tells open pages of signed-in people about changes. It sends
 * the fleet, and otherwise only says that something is new; pages ask for it over HTTP. When a login ends, its pages
 * are disconnected within `origo.refreshMs`.
 */
import type { Namespace, Server } from "socket.io";
import type { Access } from "./access";
import type { Configuration } from "./configuration";
import type { PacketLimit } from "./packet-limit";
import { fleetOf, type FleetView } from "./routes-fleet";
import { repeat } from "./repeat";

/** Open pages hear of changes at most this often. */
const PUSH_MS = 1000;

export interface DashboardLinkOptions extends FleetView {
  access: Access;
  configuration: Configuration;
  /** The number of records taken in so far, here and at other Origos. */
  records: () => number;
  packetLimit: PacketLimit;
}

export interface DashboardLink {
  close(): void;
}

export function attachDashboardLink(io: Server, options: DashboardLinkOptions): DashboardLink {
  const { access, configuration, records, packetLimit } = options;
  const pages = io.of("/dashboard");
  pages.use((socket, next) => {
    const refused = Object.assign(new Error("sign in first"), {
      data: { kind: "loginRequired", message: "sign in first" },
    });
    access
      .identify(socket.request.headers)
      .then((identity) => next(identity === undefined ? refused : undefined), next);
  });
  pages.on("connection", (socket) => {
    packetLimit.trust(socket);
    socket.emit("fleet", fleetOf(options));
  });
  const onConfig = (): void => void pages.emit("config", { version: configuration.version });
  configuration.on("change", onConfig);
  let sentFleet = "";
  let sentCount = records();
  const push = (): void => {
    const count = records();
    if (count !== sentCount) pages.emit("records", { count: (sentCount = count) });
    if (pages.sockets.size === 0) return;
    const fleet = fleetOf(options);
    const text = JSON.stringify(fleet.proxies);
    if (text !== sentFleet) pages.emit("fleet", fleet);
    sentFleet = text;
  };
  const pushing = repeat(push, () => PUSH_MS);
  const checking = repeat(
    () => cutSignedOut(pages, access),
    () => configuration.value("origo.refreshMs"),
  );
  return {
    close: () => {
      checking.close();
      pushing.close();
      configuration.off("change", onConfig);
    },
  };
}

/** Checks each page's cookie again. If the database does not answer, every page stays connected. */
async function cutSignedOut(pages: Namespace, access: Access): Promise<void> {
  await Promise.all(
    [...pages.sockets.values()].map(async (socket) => {
      const identity = await access.identify(socket.handshake.headers).catch(() => null);
      if (identity === undefined) socket.disconnect(true);
    }),
  );
}
