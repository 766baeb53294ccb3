/** Enrolment: the endpoints by which admins let proxies in and revoke them. enrolment.ts has the rules. */
import { EnrolmentCode, EnrolmentResponse } from "@tributary/contract/admin-schema";
import type { Enrolment } from "./enrolment";
import { endpoint, notFound, type Endpoint } from "./http";

export interface EnrolmentRouteOptions {
  enrolment: Enrolment;
  /** Called when an admin revoked a proxy. */
  onRevoked: () => void;
}

export const enrolmentEndpoints = ({ enrolment, onRevoked }: EnrolmentRouteOptions): Endpoint[] => [
  endpoint({
    method: "get",
    path: "/v1/enrolment",
    access: "viewer",
    summary: "List the proxies that may connect, and those that were revoked",
    answer: EnrolmentResponse,
    handle: async () => ({ proxies: await enrolment.list() }),
  }),
  endpoint({
    method: "post",
    path: "/v1/enrolment",
    access: "admin",
    summary: "Make a one-time code that lets one more proxy in",
    answer: EnrolmentCode,
    status: 201,
    handle: ({ author, response }) => {
      response.set("Cache-Control", "no-store");
      return enrolment.newCode(author);
    },
  }),
  endpoint({
    method: "delete",
    path: "/v1/enrolment/:id",
    access: "admin",
    summary: "Revoke a proxy: it is disconnected, its key is never let in again, and its name is free",
    answer: EnrolmentResponse,
    handle: async ({ params: { id = "" } }) => {
      if (!(await enrolment.revoke(id))) throw notFound(`no proxy with the id ${id} is enrolled`);
      onRevoked();
      return { proxies: await enrolment.list() };
    },
  }),
];
