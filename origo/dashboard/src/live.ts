/**
 * Live: Origo sends news over the socket.io namespace /dashboard: the fleet, that new records arrived, that the
 * configuration changed. While this link is down, the pages ask every few seconds. Origo closes the link when the login
 * ends; the page then asks for the login again.
 */
import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { io } from "socket.io-client";
import type { FleetResponse } from "@tributary/contract/schema";

/** How often to ask while the link is down, in ms. False means never. */
export const pollMs = (live: boolean, ms: number): number | false => (live ? false : ms);

/** Keeps the link open while mounted. True while it is up. */
export function useLive(): boolean {
  const [live, setLive] = useState(false);
  const client = useQueryClient();
  useEffect(() => {
    // WebSocket alone needs one connection, so a load balancer may send each connection to any Origo.
    const socket = io("/dashboard", { transports: ["websocket"] });
    socket.on("connect", () => setLive(true));
    const signedOut = (): void => void client.invalidateQueries({ queryKey: ["login"] });
    socket.on("disconnect", (reason) => {
      setLive(false);
      if (reason === "io server disconnect") signedOut();
    });
    socket.on(
      "connect_error",
      ({ data }: { data?: { kind?: string } }) => data?.kind === "loginRequired" && signedOut(),
    );
    socket.on("fleet", (fleet: FleetResponse) => client.setQueryData(["fleet"], fleet));
    socket.on("records", () => void client.invalidateQueries({ queryKey: ["newest"] }));
    socket.on("config", () => void client.invalidateQueries({ queryKey: ["config"] }));
    return () => void socket.close();
  }, [client]);
  return live;
}
