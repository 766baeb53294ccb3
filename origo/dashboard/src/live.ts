/**
 * Live: what Origo tells without being asked, over socket.io's namespace /dashboard: the fleet, that new records or
 * errors came, that the configuration changed. While the link is down the pages ask every few seconds instead. Origo
 * cuts the link of whoever is signed out: the login is asked for anew then.
 */
import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { io } from "socket.io-client";
import type { FleetResponse } from "@tributary/contract/schema";

/** How often to ask while the link is down, ms; false = not at all. */
export const pollMs = (live: boolean, ms: number): number | false => (live ? false : ms);

/** Keeps the link while mounted; true while it is up. */
export function useLive(): boolean {
  const [live, setLive] = useState(false);
  const client = useQueryClient();
  useEffect(() => {
    // One connection, so that a balancer in front of several Origos need not keep them together.
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
