/**
 * Experiments: an experiment has arms, each with a weight and the client settings that it changes. While it runs, each
 * download draws an arm, and its record names the arm. A link opens the analysis by arm.
 */
import { Button, CloseButton, NumberInput, Select, Textarea, TextInput } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import type { ConfigResponse, Experiment, Setting, SettingValues } from "@tributary/contract/admin-schema";
import { api, under } from "../api";
import { experimentsQuery } from "../fields";
import { clock } from "../format";
import { linkTo } from "../hash";
import { useLogin } from "../login";
import { faultOf, SettingInput, showValue, without } from "../settings";
import type { PageProps } from "../page-props";
import { Confirm, DataTable, Empty, Failure, Page, Section, Tag, type Tone } from "../ui";

const STATE_TONES: Record<Experiment["state"], Tone> = { draft: "plain", running: "good", stopped: "warn" };

export default function ExperimentsPage(_props: PageProps) {
  const { admin } = useLogin();
  const { data, error } = useQuery(experimentsQuery);
  const [making, setMaking] = useState(false);
  const experiments = data?.experiments ?? [];
  return (
    <Page
      title="Experiments"
      aside={
        admin ? (
          <Button size="compact-md" onClick={() => setMaking(true)}>
            New experiment
          </Button>
        ) : null
      }
    >
      <Failure error={error} />
      {data && experiments.length === 0 ? (
        <Empty>
          There is no experiment yet. An experiment compares settings: each download draws one of its arms at random,
          and the record of the download names the arm.
        </Empty>
      ) : null}
      {experiments.map((experiment) => (
        <ExperimentCard key={experiment.id} experiment={experiment} admin={admin} />
      ))}
      {making ? <NewExperiment close={() => setMaking(false)} /> : null}
    </Page>
  );
}

function useRefresh(): () => Promise<void> {
  const client = useQueryClient();
  return () => client.invalidateQueries({ queryKey: ["experiments"] });
}

function ExperimentCard({ experiment, admin }: { experiment: Experiment; admin: boolean }) {
  const refresh = useRefresh();
  const [asked, setAsked] = useState(false);
  const { id, name, question, arms, state, author, createdAtMs, startedAtMs, stoppedAtMs } = experiment;
  const next = state === "draft" ? "running" : state === "running" ? "stopped" : undefined;
  const total = arms.reduce((sum, arm) => sum + arm.weight, 0);
  const times = [
    `created ${clock(createdAtMs, Date.now())} by ${author}`,
    startedAtMs === null ? "" : `started ${clock(startedAtMs, Date.now())}`,
    stoppedAtMs === null ? "" : `stopped ${clock(stoppedAtMs, Date.now())}`,
  ];
  const analysis = {
    chart: "box",
    metric: "goodputBytesPerSec",
    groupBy: [`arm:${id}`],
    where: [{ field: `arm:${id}`, op: "notNull" }],
    ...(arms[0] && arms[1] ? { difference: { field: `arm:${id}`, a: arms[0].name, b: arms[1].name } } : {}),
  };
  return (
    <Section title={name} aside={<Tag tone={STATE_TONES[state]}>{state}</Tag>}>
      {question === "" ? null : <p>{question}</p>}
      <DataTable label={`Arms of ${name}`} heads={["Arm", { text: "Share", num: true }, "Settings"]}>
        {arms.map((arm) => (
          <tr key={arm.name}>
            <th scope="row">{arm.name}</th>
            <td className="num">{((100 * arm.weight) / total).toFixed(0)} %</td>
            <td className="arm-values">
              {Object.entries(arm.values).map(([key, value]) => (
                <div key={key}>
                  <code>{key}</code> = {showValue(value)}
                </div>
              ))}
              {Object.keys(arm.values).length === 0 ? <span className="muted">no change</span> : null}
            </td>
          </tr>
        ))}
      </DataTable>
      <div className="page-actions experiment-actions">
        <small>{times.filter((each) => each !== "").join(" · ")}</small>
        {state === "draft" ? null : <a href={linkTo("analysis", analysis)}>Analyse by arm</a>}
        {admin && next ? (
          <Button size="compact-sm" variant={next === "running" ? "filled" : "default"} onClick={() => setAsked(true)}>
            {next === "running" ? "Start" : "Stop"}
          </Button>
        ) : null}
      </div>
      {asked && next ? (
        <Confirm
          title={`${next === "running" ? "Start" : "Stop"} ${name}?`}
          action={next === "running" ? "Start" : "Stop"}
          close={() => setAsked(false)}
          run={() => api.patch(under("/v1/experiments", id), { state: next }).then(refresh)}
        >
          <p>
            {next === "running"
              ? "Each new download will draw one of its arms."
              : "New downloads will no longer draw an arm. A stopped experiment cannot be started again."}
          </p>
        </Confirm>
      ) : null}
    </Section>
  );
}

interface ArmDraft {
  name: string;
  weight: number;
  values: SettingValues;
}

const EMPTY_ARMS: ArmDraft[] = [
  { name: "control", weight: 1, values: {} },
  { name: "treatment", weight: 1, values: {} },
];

function NewExperiment({ close }: { close: () => void }) {
  const refresh = useRefresh();
  const { data: config, error } = useQuery({
    queryKey: ["config", "now"],
    queryFn: () => api.get<ConfigResponse>("/v1/config"),
  });
  const [name, setName] = useState("");
  const [question, setQuestion] = useState("");
  const [arms, setArms] = useState(EMPTY_ARMS);
  const settings = (config?.settings ?? []).filter((setting) => setting.perDownload === true);
  const put = (index: number, arm: ArmDraft | undefined): void =>
    setArms(arms.flatMap((each, at) => (at === index ? (arm ? [arm] : []) : [each])));
  return (
    <Confirm
      title="New experiment"
      action="Save as draft"
      close={close}
      run={() => api.post("/v1/experiments", { name, question, arms }).then(refresh)}
    >
      <Failure error={error} />
      <TextInput
        label="Name"
        required
        maxLength={64}
        data-autofocus
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
      />
      <Textarea
        label="Question"
        description="What do you want to find out?"
        maxLength={1000}
        value={question}
        onChange={(event) => setQuestion(event.currentTarget.value)}
      />
      <div className="arms">
        {arms.map((arm, index) => (
          <ArmEditor
            key={index}
            arm={arm}
            settings={settings}
            change={(next) => put(index, next)}
            {...(arms.length > 2 ? { remove: () => put(index, undefined) } : {})}
          />
        ))}
      </div>
      <div>
        <Button
          variant="default"
          size="compact-sm"
          onClick={() => setArms([...arms, { name: `arm ${arms.length + 1}`, weight: 1, values: {} }])}
        >
          Add an arm
        </Button>
      </div>
    </Confirm>
  );
}

function ArmEditor({
  arm,
  settings,
  change,
  remove,
}: {
  arm: ArmDraft;
  settings: readonly Setting[];
  change: (arm: ArmDraft) => void;
  remove?: () => void;
}) {
  const unused = settings.filter((setting) => !(setting.key in arm.values));
  const set = (key: string, value: SettingValues[string] | undefined): void => {
    const rest = without(arm.values, key);
    change({ ...arm, values: value === undefined ? rest : { ...rest, [key]: value } });
  };
  return (
    <fieldset className="arm">
      <legend className="hidden">Arm {arm.name}</legend>
      <div className="arm-line">
        <TextInput
          className="grow"
          label="Arm"
          required
          maxLength={64}
          value={arm.name}
          onChange={(event) => change({ ...arm, name: event.currentTarget.value })}
        />
        <NumberInput
          className="narrow"
          label="Weight"
          min={0}
          max={1000}
          hideControls
          value={arm.weight}
          onChange={(weight) => change({ ...arm, weight: typeof weight === "number" ? weight : 0 })}
          error={arm.weight > 0 ? undefined : "must be above 0"}
        />
        {remove ? <CloseButton aria-label={`Remove arm ${arm.name}`} onClick={remove} /> : null}
      </div>
      {Object.entries(arm.values).map(([key, value]) => {
        const setting = settings.find((each) => each.key === key);
        return setting ? (
          <div key={key} className="arm-line" data-fault={faultOf(setting, value)}>
            <code className="grow" title={setting.help}>
              {key}
            </code>
            <SettingInput setting={setting} value={value} change={(next) => set(key, next)} />
            <CloseButton aria-label={`Remove ${key}`} onClick={() => set(key, undefined)} />
          </div>
        ) : null;
      })}
      <Select
        aria-label={`Add a setting to ${arm.name}`}
        placeholder="Add a setting…"
        searchable
        value={null}
        data={unused.map((setting) => setting.key)}
        onChange={(key) => {
          const setting = settings.find((each) => each.key === key);
          if (setting) set(setting.key, setting.default);
        }}
      />
    </fieldset>
  );
}
