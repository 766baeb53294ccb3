/**
 * Downloads: the table of downloads, newest first. New ones appear by themselves. The columns are those of the paper's
 * Fig. 6 until the person chooses others. Filter, columns and order are in the address, so that a view has a link.
 */
import { Button, Checkbox, Popover, ScrollArea, TextInput } from "@mantine/core";
import { useInfiniteQuery, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useMemo, useRef, useState } from "react";
import { z } from "zod";
import {
  Condition,
  type Cell,
  type DownloadsPage as RowsPage,
  type DownloadsQuery,
  type Field,
} from "@tributary/contract/query-schema";
import { api } from "../api";
import { Conditions } from "../conditions";
import { useFields } from "../fields";
import { cellOf, counted, leaf, NONE, ratio } from "../format";
import { linkTo, useHashState } from "../hash";
import { pollMs } from "../live";
import type { PageProps } from "../page-props";
import { Empty, Failure, Page, Tag, type Tone } from "../ui";
import { Views } from "../views";

const ROWS_PER_PAGE = 60;

export const DEFAULT_COLUMNS = [
  "startedAtMs",
  "purpose",
  "mode",
  "connections",
  "comment",
  "userComment",
  "netBytes",
  "grossBytes",
  "firstPacketMs",
  "serverFetchMs",
  "durationMs",
  "outcome",
  "fallbackKind",
  "goodputBytesPerSec",
  "goodputAfterFetchBytesPerSec",
  "normalizedGoodput",
];

const State = z.object({
  where: z.array(Condition).default([]),
  columns: z.array(z.string()).min(1).default(DEFAULT_COLUMNS),
  sort: z.object({ field: z.string(), descending: z.boolean() }).optional(),
});
type State = z.output<typeof State>;

/** Columns that share a heading, as in the paper's Fig. 6, when they are side by side, and their short names there. */
const HEADINGS: Record<string, readonly [heading: string, name: string]> = {
  netBytes: ["size", "net"],
  grossBytes: ["size", "gross"],
  firstPacketMs: ["duration", "first packet"],
  serverFetchMs: ["duration", "server fetch"],
  durationMs: ["duration", "gross"],
  goodputBytesPerSec: ["speed", "overall"],
  goodputAfterFetchBytesPerSec: ["speed", "no server"],
};

export default function DownloadsPage({ live }: PageProps) {
  const fields = useFields();
  const [state, change] = useHashState("downloads", State);
  const shown = useMemo(
    () =>
      state.columns.map((name) => fields.find((field) => field.name === name)).filter((field) => field !== undefined),
    [fields, state.columns],
  );
  const list = useDownloads(state, shown);
  const fresh = useFresh(live, state, list.data?.pages[0]?.ids[0]);
  const client = useQueryClient();
  const reload = () => client.resetQueries({ queryKey: ["downloads"] });
  const followed = (list.data?.pages.length ?? 0) <= 1;
  useEffect(() => {
    if (fresh && followed) void client.invalidateQueries({ queryKey: ["downloads"] });
  }, [fresh, followed, client]);
  const matching = list.data?.pages[0]?.matching;
  const rowCount = list.data?.pages.reduce((sum, page) => sum + page.ids.length, 0) ?? 0;
  return (
    <Page
      title="Downloads"
      aside={
        <span className="muted" data-testid="matching">
          {matching === undefined || matching === null ? "" : counted(matching, "download")}
        </span>
      }
    >
      <div className="toolbar">
        <Conditions fields={fields} where={state.where} change={(where) => change({ where })} />
        <div className="toolbar-right">
          {fresh && !followed ? (
            <Button size="compact-md" onClick={() => void reload()}>
              Show new downloads
            </Button>
          ) : null}
          <Columns fields={fields} chosen={state.columns} change={(columns) => change({ columns })} />
          <Views page="downloads" state={state} />
          <Button
            component="a"
            href="/v1/export?format=csv"
            download
            variant="default"
            size="compact-md"
            title="Saves all downloads, with all their fields, as a CSV file"
          >
            Export all
          </Button>
        </div>
      </div>
      <Failure error={list.error} />
      {list.data && rowCount === 0 ? (
        <Empty>
          {state.where.length > 0
            ? "No download matches the filter."
            : "No download is recorded yet. Play a video with the extension, or download a file with the command line."}
        </Empty>
      ) : null}
      {rowCount > 0 ? (
        <Table
          state={state}
          fields={shown}
          pages={list.data?.pages ?? []}
          sortBy={(field) => change({ sort: nextSort(state, field) })}
        />
      ) : null}
      {list.hasNextPage ? <More load={() => void list.fetchNextPage()} loading={list.isFetchingNextPage} /> : null}
    </Page>
  );
}

function useDownloads(state: State, shown: readonly Field[]) {
  const body: DownloadsQuery = {
    where: state.where,
    columns: shown.map((field) => field.name),
    limit: ROWS_PER_PAGE,
    ...(state.sort ? { sort: state.sort } : {}),
  };
  return useInfiniteQuery({
    queryKey: ["downloads", body],
    enabled: shown.length > 0,
    initialPageParam: null as string | null,
    queryFn: ({ pageParam }) =>
      api.post<RowsPage>("/v1/query/downloads", pageParam === null ? body : { ...body, cursor: pageParam }),
    getNextPageParam: (page) => page.next,
    placeholderData: (before) => before,
  });
}

/** True when there is a newer download than the first one shown. Always false when the table is sorted by a field. */
function useFresh(live: boolean, state: State, first: string | undefined): boolean {
  const body: DownloadsQuery = { where: state.where, columns: ["id"], limit: 1 };
  const newestFirst = state.sort === undefined;
  const { data } = useQuery({
    queryKey: ["newest", state.where],
    queryFn: () => api.post<RowsPage>("/v1/query/downloads", body),
    enabled: newestFirst,
    refetchInterval: pollMs(live, 3000),
  });
  const newest = data?.ids[0];
  return newestFirst && newest !== undefined && first !== newest;
}

/** The first click puts the largest value first, the second click the smallest, the third the newest download. */
export function nextSort(state: Pick<State, "sort">, field: string): State["sort"] {
  if (state.sort?.field !== field) return { field, descending: true };
  return state.sort.descending ? { field, descending: false } : undefined;
}

interface TableProps {
  state: State;
  fields: readonly Field[];
  pages: readonly RowsPage[];
  sortBy: (field: string) => void;
}

function Table({ state, fields, pages, sortBy }: TableProps) {
  const nowMs = Date.now();
  const columns = fields.map((field, index) => ({
    field,
    isRatio: pages.some(({ rows }) => rows.some((row) => isFraction(row[index] ?? null, field))),
  }));
  return (
    <div className="table-wrap card" tabIndex={0} role="region" aria-label="Table of downloads">
      <table className="data cards downloads">
        <Head state={state} fields={fields} sortBy={sortBy} />
        <tbody>
          {pages.flatMap((page) =>
            page.rows.map((row, index) => (
              <Row key={page.ids[index]} id={page.ids[index] ?? ""} row={row} columns={columns} nowMs={nowMs} />
            )),
          )}
        </tbody>
      </table>
    </div>
  );
}

/** Puts neighbouring columns with the same heading together. */
function groupsOf(fields: readonly Field[]): { heading: string; fields: Field[] }[] {
  const groups: { heading: string; fields: Field[] }[] = [];
  for (const field of fields) {
    const heading = HEADINGS[field.name]?.[0] ?? "";
    const last = groups[groups.length - 1];
    if (last && heading !== "" && last.heading === heading) last.fields.push(field);
    else groups.push({ heading, fields: [field] });
  }
  return groups;
}

function Head({ state, fields, sortBy }: Omit<TableProps, "pages">) {
  const groups = groupsOf(fields);
  const grouped = groups.some((group) => group.fields.length > 1);
  const heading = (field: Field, name: string, rows: number) => {
    const order = state.sort?.field === field.name ? (state.sort.descending ? "descending" : "ascending") : undefined;
    return (
      <th
        key={field.name}
        scope="col"
        rowSpan={rows}
        aria-sort={order}
        className={field.type === "number" ? "num" : undefined}
        title={field.help}
      >
        <button type="button" className="sort" onClick={() => sortBy(field.name)}>
          {name}
          <span aria-hidden="true">{order === "descending" ? " ↓" : order === "ascending" ? " ↑" : ""}</span>
        </button>
      </th>
    );
  };
  const [first, second] = [
    groups.map((group) => {
      const [only] = group.fields;
      if (group.fields.length === 1 && only) return heading(only, only.label, grouped ? 2 : 1);
      return (
        <th key={group.heading + (only?.name ?? "")} scope="colgroup" colSpan={group.fields.length} className="group">
          {group.heading}
        </th>
      );
    }),
    groups
      .filter((group) => group.fields.length > 1)
      .flatMap((group) => group.fields.map((field) => heading(field, HEADINGS[field.name]?.[1] ?? field.label, 1))),
  ];
  return (
    <thead>
      <tr>{first}</tr>
      {grouped ? <tr>{second}</tr> : null}
    </thead>
  );
}

interface Column {
  field: Field;
  /** True when the column holds fractions, so that a whole number there has decimals too. */
  isRatio: boolean;
}

const isFraction = (value: Cell, { type, unit }: Field): boolean =>
  type === "number" && unit === null && typeof value === "number" && !Number.isInteger(value);

interface RowProps {
  id: string;
  row: readonly Cell[];
  columns: readonly Column[];
  nowMs: number;
}

function Row({ id, row, columns, nowMs }: RowProps) {
  return (
    <tr
      onClick={(event) => {
        if (!(event.target as Element).closest("a") && document.getSelection()?.isCollapsed !== false)
          window.location.hash = linkTo(`downloads/${id}`);
      }}
    >
      {columns.map(({ field, isRatio }, index) => {
        const content = <CellView field={field} isRatio={isRatio} value={row[index] ?? null} nowMs={nowMs} />;
        const linked = index === 0 ? <a href={linkTo(`downloads/${id}`)}>{content}</a> : content;
        return (
          <td
            key={field.name}
            data-label={HEADINGS[field.name]?.join(", ") ?? field.label}
            className={field.type === "number" ? "num" : undefined}
          >
            {linked}
          </td>
        );
      })}
    </tr>
  );
}

const OUTCOME_TONES: Record<string, Tone> = { complete: "plain", failed: "bad", aborted: "warn" };

function CellView({ field, isRatio, value, nowMs }: Column & { value: Cell; nowMs: number }) {
  const text = isRatio && typeof value === "number" ? ratio(value) : cellOf(value, field.type, field.unit, nowMs);
  if (text === NONE) return <span className="none">{NONE}</span>;
  if (field.name === "outcome") return <Tag tone={OUTCOME_TONES[text] ?? "plain"}>{text}</Tag>;
  if (field.name === "mode") return <span className="mode">{text}</span>;
  if (field.name === "url")
    return (
      <span className="clip" title={text}>
        {leaf(text)}
      </span>
    );
  return typeof value === "string" && text.length > 14 ? (
    <span className="clip" title={text}>
      {text}
    </span>
  ) : (
    text
  );
}

function More({ load, loading }: { load: () => void; loading: boolean }) {
  const end = useRef<HTMLDivElement>(null);
  const latest = useRef(load);
  latest.current = load;
  useEffect(() => {
    if (end.current === null || loading) return;
    const observer = new IntersectionObserver(([entry]) => entry?.isIntersecting && latest.current(), {
      rootMargin: "400px",
    });
    observer.observe(end.current);
    return () => observer.disconnect();
  }, [loading]);
  return (
    <div ref={end} className="more">
      <Button variant="default" loading={loading} onClick={load}>
        Show more
      </Button>
    </div>
  );
}

function Columns({
  fields,
  chosen,
  change,
}: {
  fields: readonly Field[];
  chosen: readonly string[];
  change: (columns: string[]) => void;
}) {
  const [search, setSearch] = useState("");
  const toggle = (name: string): void => {
    const next = chosen.includes(name) ? chosen.filter((each) => each !== name) : [...chosen, name];
    if (next.length > 0) change(next);
  };
  const matches = fields.filter((field) => `${field.label} ${field.name}`.toLowerCase().includes(search.toLowerCase()));
  return (
    <Popover position="bottom-end" shadow="md" trapFocus>
      <Popover.Target>
        <Button variant="default" size="compact-md">
          Columns ({chosen.length})
        </Button>
      </Popover.Target>
      <Popover.Dropdown aria-label="Columns">
        <TextInput
          aria-label="Search columns"
          placeholder="Search columns"
          value={search}
          onChange={(event) => setSearch(event.currentTarget.value)}
          mb="xs"
        />
        <ScrollArea.Autosize mah={320} viewportProps={{ tabIndex: 0 }}>
          <div className="column-list">
            {matches.map((field) => (
              <Checkbox
                key={field.name}
                size="xs"
                label={field.label}
                title={field.help}
                checked={chosen.includes(field.name)}
                onChange={() => toggle(field.name)}
              />
            ))}
          </div>
        </ScrollArea.Autosize>
        <Button mt="xs" variant="subtle" size="compact-sm" onClick={() => change(DEFAULT_COLUMNS)}>
          Columns of the paper
        </Button>
      </Popover.Dropdown>
    </Popover>
  );
}
