/** Administration: the endpoints for logins, users and saved views. access.ts says what a login is. */
import { randomUUID } from "node:crypto";
import {
  ADMIN_LIMITS,
  LoginRequest,
  NewUser,
  NewView,
  LoginResponse,
  SetupRequest,
  User,
  UserChange,
  UsersResponse,
  View,
  ViewsResponse,
} from "@tributary/contract/admin-schema";
import type { Access } from "./access";
import { endpoint, notFound, Refusal, type Endpoint } from "./http";
import { checkStrength } from "./password-strength";
import { keep } from "./password";
import type { AdminStore } from "./store/admin-store";

export interface AdminOptions {
  access: Access;
  adminStore: AdminStore;
  nowMs: () => number;
}

export const adminEndpoints = (options: AdminOptions): Endpoint[] => [
  ...loginEndpoints(options),
  ...userEndpoints(options),
  ...viewEndpoints(options),
];

const loginEndpoints = ({ access }: AdminOptions): Endpoint[] => [
  endpoint({
    method: "get",
    path: "/v1/login",
    access: "public",
    summary: "Tells who is signed in",
    answer: LoginResponse,
    handle: ({ request, response }) => {
      response.set("Cache-Control", "no-store");
      return access.describe(request.headers);
    },
  }),
  endpoint({
    method: "post",
    path: "/v1/login",
    access: "public",
    summary: "Sign in",
    body: LoginRequest,
    answer: LoginResponse,
    handle: ({ request, response, body }) => access.logIn(request, response, body.name, body.password),
  }),
  endpoint({
    method: "delete",
    path: "/v1/login",
    access: "public",
    summary: "Sign out",
    answer: LoginResponse,
    handle: ({ request, response }) => access.logOut(request, response),
  }),
  endpoint({
    method: "post",
    path: "/v1/setup",
    access: "public",
    summary: "Create the first admin with the one-time link",
    body: SetupRequest,
    answer: LoginResponse,
    handle: ({ request, response, body }) => access.setUp(request, response, body),
  }),
];

const userEndpoints = ({ adminStore, nowMs }: AdminOptions): Endpoint[] => [
  endpoint({
    method: "get",
    path: "/v1/users",
    access: "admin",
    summary: "List all users",
    answer: UsersResponse,
    handle: async () => ({ users: await adminStore.users() }),
  }),
  endpoint({
    method: "post",
    path: "/v1/users",
    access: "admin",
    summary: "Add a user",
    body: NewUser,
    answer: User,
    status: 201,
    handle: async ({ body }) => {
      await checkStrength(body.password, body.name);
      const createdAtMs = nowMs();
      const added = await adminStore.addUser({ ...body, password: await keep(body.password) }, createdAtMs);
      if (!added)
        throw new Refusal(409, {
          kind: "nameTaken",
          field: "name",
          message: `name: there is already a user ${body.name}`,
        });
      return { name: body.name, role: body.role, createdAtMs, lastLoginMs: null } satisfies User;
    },
  }),
  endpoint({
    method: "patch",
    path: "/v1/users/:name",
    access: "admin",
    summary: "Change a user's password or role, and sign this user out",
    body: UserChange,
    answer: UsersResponse,
    handle: async ({ params: { name = "" }, body }) => {
      if (body.password !== undefined) await checkStrength(body.password, name);
      const password = body.password === undefined ? undefined : await keep(body.password);
      if (!(await adminStore.changeUser(name, { password, role: body.role }))) throw await whyNot(adminStore, name);
      await adminStore.endLoginsOf(name);
      return { users: await adminStore.users() };
    },
  }),
  endpoint({
    method: "delete",
    path: "/v1/users/:name",
    access: "admin",
    summary: "Remove a user",
    answer: UsersResponse,
    handle: async ({ params: { name = "" } }) => {
      if (!(await adminStore.deleteUser(name))) throw await whyNot(adminStore, name);
      await adminStore.endLoginsOf(name);
      return { users: await adminStore.users() };
    },
  }),
];

async function whyNot(store: AdminStore, name: string): Promise<Refusal> {
  const known = (await store.users()).some((user) => user.name === name);
  return known
    ? new Refusal(409, { kind: "lastAdmin", message: `${name} is the last admin: make another user an admin first` })
    : notFound(`there is no user ${name}`);
}

const viewEndpoints = ({ adminStore, nowMs }: AdminOptions): Endpoint[] => [
  endpoint({
    method: "get",
    path: "/v1/views",
    access: "viewer",
    summary: "List the saved views",
    answer: ViewsResponse,
    handle: async () => ({ views: await adminStore.views() }),
  }),
  endpoint({
    method: "post",
    path: "/v1/views",
    access: "admin",
    summary: "Save a view",
    body: NewView,
    answer: View,
    status: 201,
    handle: async ({ body, author }) => {
      const got = (await adminStore.views()).length + 1;
      const limit = ADMIN_LIMITS.views;
      if (got > limit)
        throw new Refusal(409, {
          kind: "tooManyViews",
          message: `this would be view ${got}, and the limit is ${limit}: delete some views first`,
          got,
          limit,
        });
      const view: View = { ...body, id: randomUUID(), author, createdAtMs: nowMs() };
      await adminStore.addDocument("views", view);
      return view;
    },
  }),
  endpoint({
    method: "delete",
    path: "/v1/views/:id",
    access: "admin",
    summary: "Delete a saved view",
    handle: async ({ params: { id = "" } }) => {
      if (!(await adminStore.deleteView(id))) throw notFound(`there is no view ${id}`);
    },
  }),
];
