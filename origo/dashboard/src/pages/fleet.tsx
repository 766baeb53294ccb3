/**
 * Fleet: where the proxies are and what they do now. Admins can drain, disable, enable and rename them, and clear
 * convictions.
 */
import { ActionIcon, Menu, TextInput } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { lazy, Suspense, useRef, useState } from "react";
import type { FleetAction } from "@tributary/contract/admin-schema";
import type { FleetProxy, FleetResponse } from "@tributary/contract/schema";
import { api, under } from "../api";
import type { PlacedProxy } from "../chart/places";
import { bytes, count, counted, degrees, NONE, rate, span } from "../format";
import { pollMs } from "../live";
import { useLogin } from "../login";
import type { PageProps } from "../page-props";
import { Confirm, DataTable, Empty, Failure, Page, Section, Tag, Tile, type Head, type Tone } from "../ui";
import { Enrolment } from "./enrolment";

const FleetMap = lazy(() => import(/* webpackChunkName: "map" */ "../chart/map"));

/** A sparkline shows this many samples of a proxy's rate. */
const SAMPLES = 60;
/** The report of a live proxy is late when the last one is older than this. */
const LATE_MS = 3000;

/** A row shows this many kinds of errors, the latest first. */
const KINDS_SHOWN = 3;

type Rates = Map<string, { atMs: number; values: number[] }>;

/** Adds the rate of each new report to the last rates of its proxy. */
function addSamples(rates: Rates, fleet: FleetResponse): Rates {
  for (const proxy of fleet.proxies) {
    const known = rates.get(proxy.id) ?? { atMs: 0, values: [] };
    if (proxy.sentBytesPerSec === null || known.atMs === proxy.lastSeenMs) continue;
    rates.set(proxy.id, { atMs: proxy.lastSeenMs, values: [...known.values, proxy.sentBytesPerSec].slice(-SAMPLES) });
  }
  return rates;
}

export default function FleetPage({ live }: PageProps) {
  const { data: fleet, error } = useQuery({
    queryKey: ["fleet"],
    queryFn: () => api.get<FleetResponse>("/v1/fleet"),
    refetchInterval: pollMs(live, 2000),
  });
  const rates = useRef<Rates>(new Map());
  if (fleet === undefined)
    return (
      <Page title="Fleet">
        <Failure error={error} />
      </Page>
    );
  addSamples(rates.current, fleet);
  const placed = fleet.proxies.filter((proxy): proxy is PlacedProxy => proxy.place !== undefined);
  return (
    <Page title="Fleet">
      <Failure error={error} />
      <Totals proxies={fleet.proxies} />
      {placed.length > 0 ? (
        <Section title="Map">
          <Suspense fallback={<div className="map-space" />}>
            <FleetMap proxies={placed} />
          </Suspense>
        </Section>
      ) : null}
      <Section title="Proxies">
        {fleet.proxies.length === 0 ? (
          <Empty>No proxy is connected. Enrol one below and start it, as docs/use/operator.md explains.</Empty>
        ) : (
          <ProxyTable fleet={fleet} rates={rates.current} />
        )}
      </Section>
      <Enrolment liveIds={new Set(fleet.proxies.map(({ id }) => id))} />
    </Page>
  );
}

function Totals({ proxies }: { proxies: readonly FleetProxy[] }) {
  const sum = (of: (proxy: FleetProxy) => number): number => proxies.reduce((total, proxy) => total + of(proxy), 0);
  const declared = sum((proxy) => proxy.rateBytesPerSec);
  return (
    <dl className="tiles">
      <Tile
        label="Live proxies"
        value={count(proxies.length)}
        note={`${proxies.filter((proxy) => proxy.state === "live").length} accept new clients`}
      />
      <Tile
        label="Sending now"
        value={rate(sum((proxy) => proxy.sentBytesPerSec ?? 0))}
        note={declared > 0 ? `limit: ${rate(declared)}` : "no limit"}
      />
      <Tile label="Fetching from origins" value={rate(sum((proxy) => proxy.originBytesPerSec ?? 0))} />
      <Tile
        label="Sessions"
        value={count(sum((proxy) => proxy.status?.sessions ?? 0))}
        note={counted(
          sum((proxy) => proxy.status?.activeRequests ?? 0),
          "active request",
        )}
      />
      <Tile
        label="In the caches"
        value={bytes(sum((proxy) => proxy.status?.cacheBytes ?? 0))}
        note={counted(
          sum((proxy) => proxy.status?.cacheHits ?? 0),
          "cache hit",
        )}
      />
      <Tile label="Errors" value={count(sum((proxy) => proxy.status?.errors ?? 0))} note="since the proxies started" />
    </dl>
  );
}

const STATE_TONES: Record<FleetProxy["state"], Tone> = { live: "good", draining: "warn", disabled: "bad" };

const HEADS: readonly Head[] = [
  "Proxy",
  "State",
  { text: "Rate now", num: true },
  { text: "Sessions", num: true },
  { text: "Cache", num: true },
  { text: "Errors", num: true },
  "Engine",
  "Version",
  "Up for",
  "Last report",
];
const ACTIONS: Head = { text: "Actions", hidden: true };

function ProxyTable({ fleet, rates }: { fleet: FleetResponse; rates: Rates }) {
  const { admin } = useLogin();
  return (
    <DataTable label="Table of proxies" className="cards" heads={admin ? [...HEADS, ACTIONS] : HEADS}>
      {fleet.proxies.map((proxy) => (
        <ProxyRow
          key={proxy.id}
          proxy={proxy}
          nowMs={fleet.nowMs}
          rates={rates.get(proxy.id)?.values ?? []}
          admin={admin}
        />
      ))}
    </DataTable>
  );
}

function ProxyRow({
  proxy,
  nowMs,
  rates,
  admin,
}: {
  proxy: FleetProxy;
  nowMs: number;
  rates: readonly number[];
  admin: boolean;
}) {
  const { status } = proxy;
  const ageMs = Math.max(0, nowMs - proxy.lastSeenMs);
  const where = [proxy.operator, proxy.place && degrees(proxy.place)].filter(Boolean).join(" · ");
  return (
    <tr>
      <th scope="row" data-label="Proxy">
        <b>{proxy.name}</b>
        <small title={proxy.id}>{where === "" ? proxy.url : where}</small>
      </th>
      <td data-label="State">
        <Tag tone={STATE_TONES[proxy.state]}>{proxy.state}</Tag>
        {proxy.disabledFor === undefined ? null : (
          <small title="Origo disabled it. An admin can clear its convictions.">not listed: it was convicted</small>
        )}
        {proxy.convictedBy === undefined ? null : (
          <small title="Clients there have shown false packets of this proxy within a day. Origo checked them.">
            <Tag tone="bad">lied to {counted(proxy.convictedBy, "network")}</Tag>
          </small>
        )}
        {proxy.hintedBy === undefined ? null : (
          <small title="Clients there say, within a day, that it lied about a published object. That proves nothing.">
            accused in {counted(proxy.hintedBy, "network")}
          </small>
        )}
        <small>{status?.load === undefined ? "" : `load ${Math.round(100 * status.load)} %`}</small>
      </td>
      <td data-label="Rate now" className="num">
        <Sparkline values={rates} limit={proxy.rateBytesPerSec} />
        <span>
          {rate(proxy.sentBytesPerSec)}
          <small>{proxy.rateBytesPerSec > 0 ? `limit: ${rate(proxy.rateBytesPerSec)}` : "no limit"}</small>
        </span>
      </td>
      <td data-label="Sessions" className="num">
        {status ? count(status.sessions) : NONE}
        <small>{status ? counted(status.activeRequests, "request") : ""}</small>
      </td>
      <td data-label="Cache" className="num">
        {status ? bytes(status.cacheBytes) : NONE}
        <small>{status ? counted(status.cacheHits, "hit") : ""}</small>
      </td>
      <td data-label="Errors" className="num">
        {status ? <Tag tone={status.errors > 0 ? "bad" : "plain"}>{count(status.errors)}</Tag> : NONE}
        {(status?.latestErrors ?? []).slice(0, KINDS_SHOWN).map((error) => (
          <small key={error.kind} title={`${counted(error.count, "error")}, the last one ${span(error.ageMs)} ago`}>
            {error.kind} × {count(error.count)}
          </small>
        ))}
        <small title="Messages of clients that no client may send, or that came faster than the proxy reads">
          {status?.rejectedMessages ? counted(status.rejectedMessages, "rejected message") : ""}
        </small>
      </td>
      <td data-label="Engine">{proxy.engine}</td>
      <td data-label="Version">{proxy.version}</td>
      <td data-label="Up for">{span(Math.max(0, nowMs - proxy.startedAtMs))}</td>
      <td data-label="Last report">
        <Tag tone={ageMs > LATE_MS ? "warn" : "good"}>{(ageMs / 1000).toFixed(1)} s ago</Tag>
      </td>
      {admin ? (
        <td className="actions">
          <Actions proxy={proxy} />
        </td>
      ) : null}
    </tr>
  );
}

/** The last rates. The top of the sparkline is the limit of the proxy, or the highest rate when there is no limit. */
function Sparkline({ values, limit }: { values: readonly number[]; limit: number }) {
  const [width, height] = [80, 22];
  const top = Math.max(limit, ...values, 1);
  const points = values.map(
    (value, index) =>
      `${(width * (SAMPLES - values.length + index)) / (SAMPLES - 1)},${height - 1 - ((height - 2) * value) / top}`,
  );
  return (
    <svg className="spark" viewBox={`0 0 ${width} ${height}`} width={width} height={height} aria-hidden="true">
      <polyline points={points.join(" ")} />
    </svg>
  );
}

type Asked = FleetAction["action"];

const QUESTIONS: Record<Asked, { title: (name: string) => string; text: string; action: string; danger: boolean }> = {
  drain: {
    title: (name) => `Drain ${name}?`,
    text: "It finishes its downloads. New clients are not sent to it.",
    action: "Drain",
    danger: false,
  },
  disable: {
    title: (name) => `Disable ${name}?`,
    text: "Clients are not sent to it until you enable it again, also after a restart.",
    action: "Disable",
    danger: true,
  },
  enable: {
    title: (name) => `Enable ${name}?`,
    text: "Clients are sent to it again.",
    action: "Enable",
    danger: false,
  },
  clear: {
    title: (name) => `Clear the convictions of ${name}?`,
    text:
      "Origo forgets what clients have shown and said against it. If Origo disabled the proxy for them, clients are " +
      "sent to it again. This cannot be undone.",
    action: "Clear convictions",
    danger: true,
  },
  rename: {
    title: (name) => `Rename ${name}`,
    text: "The proxy keeps its id and its records.",
    action: "Rename",
    danger: false,
  },
};

function Actions({ proxy }: { proxy: FleetProxy }) {
  const client = useQueryClient();
  const [asked, setAsked] = useState<Asked>();
  const [name, setName] = useState(proxy.name);
  const offered: Asked[] = [
    ...(proxy.state === "live" ? (["drain", "disable"] as const) : (["enable"] as const)),
    ...((proxy.convictedBy ?? proxy.hintedBy ?? proxy.disabledFor) === undefined ? [] : (["clear"] as const)),
    "rename",
  ];
  const act = async (): Promise<void> => {
    if (asked === undefined) return;
    const action: FleetAction = asked === "rename" ? { action: asked, name } : { action: asked };
    await api.post(under("/v1/fleet", proxy.id), action);
    await client.invalidateQueries({ queryKey: ["fleet"] });
  };
  return (
    <>
      <Menu position="bottom-end">
        <Menu.Target>
          <ActionIcon variant="subtle" color="gray" aria-label={`Actions for ${proxy.name}`}>
            ⋯
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          {offered.map((each) => (
            <Menu.Item
              key={each}
              onClick={() => {
                setName(proxy.name);
                setAsked(each);
              }}
            >
              {QUESTIONS[each].action}
              {each === "rename" ? "…" : ""}
            </Menu.Item>
          ))}
        </Menu.Dropdown>
      </Menu>
      {asked ? (
        <Confirm
          title={QUESTIONS[asked].title(proxy.name)}
          action={QUESTIONS[asked].action}
          danger={QUESTIONS[asked].danger}
          run={act}
          close={() => setAsked(undefined)}
        >
          <p>{QUESTIONS[asked].text}</p>
          {asked === "rename" ? (
            <TextInput
              label="Name"
              required
              maxLength={64}
              data-autofocus
              value={name}
              onChange={(event) => setName(event.currentTarget.value)}
            />
          ) : null}
        </Confirm>
      ) : null}
    </>
  );
}
