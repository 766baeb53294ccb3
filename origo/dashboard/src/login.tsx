/**
 * Login: who is signed in and what this person may do. Has the form to sign in, and the form that makes the first admin
 * with the one-time link (`#setup=TOKEN`).
 */
import { Button, PasswordInput, Stack, TextInput } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { createContext, useContext, useState, type ReactNode } from "react";
import type { LoginResponse } from "@tributary/contract/admin-schema";
import { api, setCsrfToken } from "./api";
import { Failure } from "./ui";

interface LoginView {
  login: LoginResponse;
  /** True if this person may change things. */
  admin: boolean;
  signOut: () => void;
}

const Context = createContext<LoginView | undefined>(undefined);

export function useLogin(): LoginView {
  const view = useContext(Context);
  if (view === undefined) throw new Error("useLogin is called outside of LoginGate");
  return view;
}

/** Shows `children` to people who may read, and otherwise the form to sign in or to set up. */
export function LoginGate({ children }: { children: ReactNode }) {
  const client = useQueryClient();
  const [setupToken, setSetupToken] = useState(() => /^#setup=(.+)$/.exec(window.location.hash)?.[1]);
  const { data: login, error } = useQuery({
    queryKey: ["login"],
    queryFn: () => api.get<LoginResponse>("/v1/login"),
    staleTime: Infinity,
    retry: 2,
  });
  const take = (next: LoginResponse): void => {
    setCsrfToken(next.csrfToken);
    client.removeQueries({ predicate: (query) => query.queryKey[0] !== "login" });
    client.setQueryData(["login"], next);
    setSetupToken(undefined);
    if (window.location.hash.startsWith("#setup=")) window.location.replace("#/fleet");
  };
  const signOut = useMutation({ mutationFn: () => api.remove<LoginResponse>("/v1/login"), onSuccess: take });
  if (error)
    return (
      <Entry title="Origo">
        <Failure error={error} />
      </Entry>
    );
  if (login === undefined) return null;
  setCsrfToken(login.csrfToken);
  if (setupToken !== undefined) return <SetUp token={setupToken} done={take} />;
  if (login.loginRequired && login.user === null) return <SignIn done={take} />;
  const admin = login.user === null || login.user.role === "admin";
  return <Context.Provider value={{ login, admin, signOut: () => signOut.mutate() }}>{children}</Context.Provider>;
}

function Entry({ title, children }: { title: string; children: ReactNode }) {
  return (
    <main className="entry">
      <img src="icon.svg" alt="" width="40" height="40" />
      <h1>{title}</h1>
      {children}
    </main>
  );
}

function SignIn({ done }: { done: (login: LoginResponse) => void }) {
  const [name, setName] = useState("");
  const [password, setPassword] = useState("");
  const signIn = useMutation({
    mutationFn: () => api.post<LoginResponse>("/v1/login", { name, password }),
    onSuccess: done,
  });
  return (
    <Entry title="Sign in to Origo">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          signIn.mutate();
        }}
      >
        <Stack>
          <TextInput
            label="Name"
            name="name"
            autoComplete="username"
            autoFocus
            required
            value={name}
            onChange={(event) => setName(event.currentTarget.value)}
          />
          <PasswordInput
            label="Password"
            name="password"
            autoComplete="current-password"
            required
            value={password}
            onChange={(event) => setPassword(event.currentTarget.value)}
          />
          <Failure error={signIn.error} />
          <Button type="submit" loading={signIn.isPending}>
            Sign in
          </Button>
        </Stack>
      </form>
    </Entry>
  );
}

function SetUp({ token, done }: { token: string; done: (login: LoginResponse) => void }) {
  const [name, setName] = useState("");
  const [password, setPassword] = useState("");
  const [again, setAgain] = useState("");
  const setUp = useMutation({
    mutationFn: () => api.post<LoginResponse>("/v1/setup", { token, name, password }),
    onSuccess: done,
  });
  const differs = again !== "" && again !== password;
  return (
    <Entry title="Set up Origo">
      <p>This link works once. It creates the first admin, who can then add other users.</p>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (again === password) setUp.mutate();
        }}
      >
        <Stack>
          <TextInput
            label="Your name"
            name="name"
            autoComplete="username"
            autoFocus
            required
            maxLength={64}
            value={name}
            onChange={(event) => setName(event.currentTarget.value)}
          />
          <PasswordInput
            label="Password"
            name="password"
            description="At least 10 characters"
            autoComplete="new-password"
            required
            minLength={10}
            value={password}
            onChange={(event) => setPassword(event.currentTarget.value)}
          />
          <PasswordInput
            label="Password again"
            name="again"
            autoComplete="new-password"
            required
            value={again}
            error={differs ? "The two passwords differ" : undefined}
            onChange={(event) => setAgain(event.currentTarget.value)}
          />
          <Failure error={setUp.error} />
          <Button type="submit" loading={setUp.isPending} disabled={differs}>
            Create the first admin
          </Button>
        </Stack>
      </form>
    </Entry>
  );
}
