/**
 * Views: saved states of a page, each with a name. A view is a link to the page in that state.
 */
import { Button, CloseButton, Menu, TextInput } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import type { View } from "@tributary/contract/admin-schema";
import { api, under } from "./api";
import { usePlace } from "./hash";
import { useLogin } from "./login";
import { Confirm } from "./ui";

export function Views({ page, state }: { page: View["page"]; state: unknown }) {
  const { admin } = useLogin();
  const { state: shown } = usePlace();
  const [saving, setSaving] = useState(false);
  const [removing, setRemoving] = useState<View>();
  const { data } = useQuery({ queryKey: ["views"], queryFn: () => api.get<{ views: View[] }>("/v1/views") });
  const views = (data?.views ?? []).filter((view) => view.page === page);
  return (
    <>
      <Menu position="bottom-end">
        <Menu.Target>
          <Button variant="default" size="compact-md">
            Views{views.length > 0 ? ` (${views.length})` : ""}
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          {views.length === 0 ? <Menu.Label>No view is saved yet</Menu.Label> : null}
          {views.map((view) => (
            <Menu.Item
              key={view.id}
              component="a"
              href={`#/${page}?${encodeURIComponent(view.state)}`}
              aria-current={view.state === shown ? "true" : undefined}
              rightSection={
                admin ? (
                  <CloseButton
                    component="span"
                    size="xs"
                    title={`Delete ${view.name}`}
                    onClick={(event) => {
                      event.preventDefault();
                      setRemoving(view);
                    }}
                  />
                ) : null
              }
            >
              {view.name}
            </Menu.Item>
          ))}
          <Menu.Divider />
          <Menu.Item onClick={() => void navigator.clipboard?.writeText(window.location.href)}>Copy link</Menu.Item>
          {admin ? <Menu.Item onClick={() => setSaving(true)}>Save this view…</Menu.Item> : null}
        </Menu.Dropdown>
      </Menu>
      {saving ? <SaveView page={page} state={state} close={() => setSaving(false)} /> : null}
      {removing ? <RemoveView view={removing} close={() => setRemoving(undefined)} /> : null}
    </>
  );
}

function useRefresh(): () => Promise<void> {
  const client = useQueryClient();
  return () => client.invalidateQueries({ queryKey: ["views"] });
}

function SaveView({ page, state, close }: { page: View["page"]; state: unknown; close: () => void }) {
  const refresh = useRefresh();
  const [name, setName] = useState("");
  return (
    <Confirm
      title="Save this view"
      action="Save"
      close={close}
      run={() => api.post("/v1/views", { name, page, state: JSON.stringify(state) }).then(refresh)}
    >
      <TextInput
        label="Name"
        required
        maxLength={64}
        data-autofocus
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
      />
    </Confirm>
  );
}

function RemoveView({ view, close }: { view: View; close: () => void }) {
  const refresh = useRefresh();
  return (
    <Confirm
      title={`Delete the view ${view.name}?`}
      action="Delete"
      danger
      close={close}
      run={() => api.remove(under("/v1/views", view.id)).then(refresh)}
    >
      <p>Copied links to this view still work.</p>
    </Confirm>
  );
}
