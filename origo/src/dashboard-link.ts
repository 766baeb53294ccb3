/**
 * Dashboard link: the socket.io namespace "/dashboard", over which open pages of people who are signed in hear of
 * changes. Whoever signs out elsewhere, is removed or comes to the end of the login is cut off within
 * `origo.refreshMs`. It only tells that there is something new; the records themselves are asked for over HTTP.
 */
import type { Namespace, Server } from "socket.io";
import type { Access } from "./access";
import type { Configuration } from "./configuration";
import { fleetOf } from "./routes-fleet";
import type { Registry } from "./registry";

export interface DashboardLinkOptions {
  access: Access;
  registry: Registry;
  configuration: Configuration;
  /** Taken in so far, here and at other Origos. */
  records: () => number;
  nowMs: () => number;
}

export interface DashboardLink {
  close(): void;
}

export function attachDashboardLink(
  io: Server,
  { access, registry, configuration, records, nowMs }: DashboardLinkOptions,
): DashboardLink {
  const pages = io.of("/dashboard");
  pages.use((socket, next) => {
    const refused = Object.assign(new Error("sign in first"), {
      data: { kind: "loginRequired", message: "sign in first" },
    });
    access
      .identify(socket.request.headers)
      .then((identity) => next(identity === undefined ? refused : undefined), next);
  });
  pages.on("connection", (socket) => void socket.emit("fleet", fleetOf({ registry, nowMs })));
  const onConfig = (): void => void pages.emit("config", { version: configuration.version });
  configuration.on("change", onConfig);
  let told = "";
  let toldCount = records();
  const push = (): void => {
    timer = setTimeout(push, configuration.number("origo.livePushMs"));
    const count = records();
    if (count !== toldCount) pages.emit("records", { count: (toldCount = count) });
    if (pages.sockets.size === 0) return;
    const fleet = fleetOf({ registry, nowMs });
    const text = JSON.stringify(fleet.proxies);
    if (text !== told) pages.emit("fleet", fleet);
    told = text;
  };
  let timer = setTimeout(push, configuration.number("origo.livePushMs"));
  let closed = false;
  let checking: NodeJS.Timeout | undefined;
  const checkLater = (): void => {
    if (!closed)
      checking = setTimeout(
        () => void cutSignedOut(pages, access).finally(checkLater),
        configuration.number("origo.refreshMs"),
      );
  };
  checkLater();
  return {
    close: () => {
      closed = true;
      clearTimeout(checking);
      clearTimeout(timer);
      configuration.off("change", onConfig);
    },
  };
}

/** The cookie that a page came with is asked for anew. A database that does not answer cuts off nobody. */
async function cutSignedOut(pages: Namespace, access: Access): Promise<void> {
  await Promise.all(
    [...pages.sockets.values()].map(async (socket) => {
      const identity = await access.identify(socket.handshake.headers).catch(() => null);
      if (identity === undefined) socket.disconnect(true);
    }),
  );
}
