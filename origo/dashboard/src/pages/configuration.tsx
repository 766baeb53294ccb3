/**
 * Configuration: every setting of the system with its type, range, unit, default and help. A change needs a reason,
 * becomes a new version and takes effect at once. The history below shows who changed what, when and why.
 */
import { Button, TextInput } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import type { ConfigHistory, ConfigResponse, Setting, SettingValues } from "@tributary/contract/admin-schema";
import { api } from "../api";
import { clock } from "../format";
import { useLogin } from "../login";
import {
  Differences,
  differencesOf,
  faultOf,
  rangeText,
  SettingInput,
  showValue,
  without,
  type Value,
} from "../settings";
import type { PageProps } from "../page-props";
import { DataTable, Empty, Failure, Page, Section, Tag } from "../ui";

export default function ConfigurationPage(_props: PageProps) {
  const { data: config, error } = useQuery({
    queryKey: ["config", "now"],
    queryFn: () => api.get<ConfigResponse>("/v1/config"),
  });
  return (
    <Page
      title="Configuration"
      aside={
        config ? (
          <span className="muted" data-testid="config-version">
            version {config.version}
          </span>
        ) : null
      }
    >
      <Failure error={error} />
      {config ? <Editor config={config} /> : null}
      <History />
    </Page>
  );
}

function Editor({ config }: { config: ConfigResponse }) {
  const { admin } = useLogin();
  const [edits, setEdits] = useState<SettingValues>({});
  const [search, setSearch] = useState("");
  const groups = useMemo(() => [...new Set(config.settings.map((setting) => setting.group))], [config.settings]);
  const now = (setting: Setting): Value => edits[setting.key] ?? config.values[setting.key] ?? setting.default;
  const edit = (setting: Setting, value: Value): void => {
    const rest = without(edits, setting.key);
    setEdits(value === (config.values[setting.key] ?? setting.default) ? rest : { ...rest, [setting.key]: value });
  };
  const matches = (setting: Setting): boolean =>
    `${setting.key} ${setting.help} ${setting.scope}`.toLowerCase().includes(search.toLowerCase());
  return (
    <>
      <TextInput
        className="search"
        aria-label="Search settings"
        placeholder="Search settings"
        mb="md"
        value={search}
        onChange={(event) => setSearch(event.currentTarget.value)}
      />
      {groups.map((group) => {
        const settings = config.settings.filter((setting) => setting.group === group && matches(setting));
        return settings.length === 0 ? null : (
          <Section key={group} title={group}>
            {settings.map((setting) => (
              <Row
                key={setting.key}
                setting={setting}
                value={now(setting)}
                edited={setting.key in edits}
                disabled={!admin}
                change={(value) => edit(setting, value)}
              />
            ))}
          </Section>
        );
      })}
      {Object.keys(edits).length > 0 ? <SaveBar config={config} edits={edits} done={() => setEdits({})} /> : null}
    </>
  );
}

interface RowProps {
  setting: Setting;
  value: Value;
  edited: boolean;
  disabled: boolean;
  change: (value: Value) => void;
}

function Row({ setting, value, edited, disabled, change }: RowProps) {
  return (
    <div className="setting" data-changed={edited} data-setting={setting.key}>
      <div>
        <code>{setting.key}</code> <Tag tone="accent">{setting.scope}</Tag>
        <div>{setting.help}</div>
        <small>
          {rangeText(setting)} · default {showValue(setting.default)}
        </small>
      </div>
      <div>
        <SettingInput setting={setting} value={value} disabled={disabled} change={change} />
        {value !== setting.default && !disabled ? (
          <Button
            variant="subtle"
            size="compact-xs"
            onClick={() => change(setting.default)}
            aria-label={`Set to default: ${setting.key}`}
          >
            Set to default
          </Button>
        ) : null}
      </div>
    </div>
  );
}

function SaveBar({ config, edits, done }: { config: ConfigResponse; edits: SettingValues; done: () => void }) {
  const client = useQueryClient();
  const [reason, setReason] = useState("");
  const values = useMemo(() => valuesAfter(config, edits), [config, edits]);
  const differences = differencesOf(config.values, values);
  const bad = config.settings.filter(
    (setting) => setting.key in edits && faultOf(setting, edits[setting.key] as Value) !== undefined,
  );
  const save = useMutation({
    mutationFn: () => api.put<ConfigResponse>("/v1/config", { baseVersion: config.version, values, reason }),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: ["config"] });
      done();
    },
    onError: () => client.invalidateQueries({ queryKey: ["config"] }),
  });
  return (
    <form
      className="save-bar"
      aria-label="Unsaved changes"
      onSubmit={(event) => {
        event.preventDefault();
        save.mutate();
      }}
    >
      <div className="grow">
        <Differences differences={differences} />
        <Failure error={save.error} />
      </div>
      <TextInput
        className="grow"
        aria-label="Reason"
        placeholder="Reason for the change"
        required
        maxLength={500}
        value={reason}
        onChange={(event) => setReason(event.currentTarget.value)}
      />
      <Button variant="default" onClick={done}>
        Discard
      </Button>
      <Button type="submit" loading={save.isPending} disabled={bad.length > 0 || reason.trim() === ""}>
        Save {differences.length === 1 ? "1 change" : `${differences.length} changes`}
      </Button>
    </form>
  );
}

/** All values that differ from their defaults after the edits. */
export function valuesAfter(config: ConfigResponse, edits: SettingValues): SettingValues {
  const defaults = new Map(config.settings.map((setting) => [setting.key, setting.default]));
  return Object.fromEntries(
    Object.entries({ ...config.values, ...edits }).filter(([key, value]) => defaults.get(key) !== value),
  );
}

function History() {
  const { data, error } = useQuery({
    queryKey: ["config", "history"],
    queryFn: () => api.get<ConfigHistory>("/v1/config/history"),
  });
  const versions = data?.versions ?? [];
  return (
    <Section title="History">
      <Failure error={error} />
      {data && versions.length === 0 ? (
        <Empty>No setting has been changed yet: all settings are at their defaults.</Empty>
      ) : null}
      {versions.length > 0 ? (
        <DataTable
          label="History of the configuration"
          className="cards"
          heads={["Version", "When", "Who", "Why", "What"]}
        >
          {versions.map((version, index) => (
            <tr key={version.version}>
              <th scope="row" data-label="Version">
                {version.version}
              </th>
              <td data-label="When">{clock(version.atMs, Date.now())}</td>
              <td data-label="Who">{version.author}</td>
              <td data-label="Why" className="long">
                {version.reason}
              </td>
              <td data-label="What" className="long">
                <Differences differences={differencesOf(versions[index + 1]?.values ?? {}, version.values)} />
              </td>
            </tr>
          ))}
        </DataTable>
      ) : null}
    </Section>
  );
}
