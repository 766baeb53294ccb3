/** Users: who may sign in, and who may change things. Only admins see this page. */
import { ActionIcon, Button, Menu, PasswordInput, Select, TextInput } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import type { Role, User } from "@tributary/contract/admin-schema";
import { api, under } from "../api";
import { clock } from "../format";
import { useLogin } from "../login";
import type { PageProps } from "../page-props";
import { Confirm, DataTable, Empty, Failure, Page, Tag } from "../ui";

const ROLES = [
  { value: "viewer", label: "viewer: can read" },
  { value: "admin", label: "admin: can read and change" },
];

export default function UsersPage(_props: PageProps) {
  const { login } = useLogin();
  const { data, error } = useQuery({ queryKey: ["users"], queryFn: () => api.get<{ users: User[] }>("/v1/users") });
  const [adding, setAdding] = useState(false);
  const users = data?.users ?? [];
  return (
    <Page
      title="Users"
      aside={
        <Button size="compact-md" onClick={() => setAdding(true)}>
          Add a user
        </Button>
      }
    >
      <Failure error={error} />
      {login.loginRequired ? null : (
        <p className="notice">
          Origo runs without login: everyone who can open this address is an admin. Users have no effect until you start
          Origo with LOGIN=required.
        </p>
      )}
      {data && users.length === 0 ? <Empty>There are no users yet.</Empty> : null}
      {users.length > 0 ? (
        <DataTable
          label="Table of users"
          className="cards"
          framed
          heads={["Name", "Role", "Added", "Last signed in", { text: "Actions", hidden: true }]}
        >
          {users.map((user) => (
            <Row key={user.name} user={user} />
          ))}
        </DataTable>
      ) : null}
      {adding ? <Add close={() => setAdding(false)} /> : null}
    </Page>
  );
}

function useRefresh(): () => Promise<void> {
  const client = useQueryClient();
  return () => client.invalidateQueries({ queryKey: ["users"] });
}

type Asked = "role" | "password" | "delete";

const otherRole = ({ role }: User): Role => (role === "admin" ? "viewer" : "admin");

function Row({ user }: { user: User }) {
  const [asked, setAsked] = useState<Asked>();
  return (
    <tr>
      <th scope="row" data-label="Name">
        {user.name}
      </th>
      <td data-label="Role">
        <Tag tone={user.role === "admin" ? "accent" : "plain"}>{user.role}</Tag>
      </td>
      <td data-label="Added">{clock(user.createdAtMs, Date.now())}</td>
      <td data-label="Last signed in">{user.lastLoginMs === null ? "never" : clock(user.lastLoginMs, Date.now())}</td>
      <td className="actions">
        <Menu position="bottom-end">
          <Menu.Target>
            <ActionIcon variant="subtle" color="gray" aria-label={`Actions for ${user.name}`}>
              ⋯
            </ActionIcon>
          </Menu.Target>
          <Menu.Dropdown>
            <Menu.Item onClick={() => setAsked("role")}>Make {otherRole(user)}</Menu.Item>
            <Menu.Item onClick={() => setAsked("password")}>New password…</Menu.Item>
            <Menu.Item onClick={() => setAsked("delete")}>Delete</Menu.Item>
          </Menu.Dropdown>
        </Menu>
        {asked ? <Change user={user} asked={asked} close={() => setAsked(undefined)} /> : null}
      </td>
    </tr>
  );
}

/** Asks before one of the changes of a user, and makes it. */
function Change({ user, asked, close }: { user: User; asked: Asked; close: () => void }) {
  const refresh = useRefresh();
  const [password, setPassword] = useState("");
  const path = under("/v1/users", user.name);
  const other = otherRole(user);
  switch (asked) {
    case "role":
      return (
        <Confirm
          title={`Make ${user.name} ${other}?`}
          action={`Make ${other}`}
          close={close}
          run={() => api.patch(path, { role: other }).then(refresh)}
        />
      );
    case "password":
      return (
        <Confirm
          title={`New password for ${user.name}`}
          action="Set"
          close={close}
          run={() => api.patch(path, { password }).then(refresh)}
        >
          <NewPassword value={password} change={setPassword} autoFocus />
        </Confirm>
      );
    case "delete":
      return (
        <Confirm
          title={`Delete ${user.name}?`}
          action="Delete"
          danger
          close={close}
          run={() => api.remove(path).then(refresh)}
        >
          <p>This signs {user.name} out at once.</p>
        </Confirm>
      );
  }
}

interface NewPasswordProps {
  value: string;
  change: (value: string) => void;
  autoFocus?: boolean;
}

function NewPassword({ value, change, autoFocus = false }: NewPasswordProps) {
  return (
    <PasswordInput
      label="Password"
      description="At least 10 characters"
      autoComplete="new-password"
      required
      minLength={10}
      data-autofocus={autoFocus ? true : undefined}
      value={value}
      onChange={(event) => change(event.currentTarget.value)}
    />
  );
}

function Add({ close }: { close: () => void }) {
  const refresh = useRefresh();
  const [name, setName] = useState("");
  const [password, setPassword] = useState("");
  const [role, setRole] = useState<Role>("viewer");
  return (
    <Confirm
      title="Add a user"
      action="Add"
      close={close}
      run={() => api.post("/v1/users", { name, password, role }).then(refresh)}
    >
      <TextInput
        label="Name"
        required
        maxLength={64}
        data-autofocus
        autoComplete="off"
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
      />
      <NewPassword value={password} change={setPassword} />
      <Select
        label="Role"
        data={ROLES}
        value={role}
        allowDeselect={false}
        onChange={(next) => next && setRole(next as Role)}
      />
    </Confirm>
  );
}
