/** Library: what is published, which proxies hold it, and who may publish. Admins publish, unpublish and revoke. */
import { Button } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import type { LibraryResponse } from "@tributary/contract/library-schema";
import type { PublicationRow } from "@tributary/contract/publication-schema";
import type { FleetResponse } from "@tributary/contract/schema";
import { api, under } from "../api";
import { bytes, clock, count, counted } from "../format";
import { pollMs } from "../live";
import { useLogin } from "../login";
import type { PageProps } from "../page-props";
import { DangerButton, DataTable, Dialog, Empty, Failure, Page, Section, Tag, Tile, type Head } from "../ui";
import { Addresses } from "./addresses";
import { Publish } from "./publish";
import { Publishers } from "./publishers";

const POLL_MS = 5000;

export default function LibraryPage({ live }: PageProps) {
  const { admin } = useLogin();
  const { data, error } = useQuery({
    queryKey: ["library"],
    queryFn: () => api.get<LibraryResponse>("/v1/library"),
    refetchInterval: POLL_MS,
  });
  const fleet = useQuery({
    queryKey: ["fleet"],
    queryFn: () => api.get<FleetResponse>("/v1/fleet"),
    refetchInterval: pollMs(live, POLL_MS),
  });
  return (
    <Page title="Library">
      <Failure error={error} />
      {data && fleet.data ? <Totals library={data} fleet={fleet.data} /> : null}
      {admin ? <Publish /> : null}
      {data ? (
        <>
          <Publications library={data} admin={admin} />
          <Publishers library={data} admin={admin} />
        </>
      ) : null}
    </Page>
  );
}

function Totals({ library: { publications }, fleet }: { library: LibraryResponse; fleet: FleetResponse }) {
  const libraries = fleet.proxies.flatMap(({ status }) => (status?.library ? [status.library] : []));
  const sum = (of: (library: (typeof libraries)[number]) => number): number =>
    libraries.reduce((total, library) => total + of(library), 0);
  const missing = publications.reduce((total, row) => total + (row.state === "released" ? row.missingObjects : 0), 0);
  const released = publications.filter(({ state }) => state === "released").length;
  const damaged = sum((library) => library.damagedObjects);
  return (
    <dl className="tiles">
      <Tile
        label="Published"
        value={count(released)}
        note={
          missing > 0
            ? `${counted(missing, "object")} missing`
            : released > 0
              ? "all objects have a live holder"
              : "no publication is released"
        }
      />
      <Tile
        label="Proxies with a library"
        value={count(libraries.length)}
        note={`of ${counted(fleet.proxies.length, "live one")}`}
      />
      <Tile
        label="On their disks"
        value={bytes(sum((library) => library.bytes))}
        note={`${counted(
          sum((library) => library.objects),
          "copy",
        ).replace(/copys$/, "copies")}, ${bytes(sum((library) => library.freeBytes))} free`}
      />
      <Tile label="Served" value={bytes(sum((library) => library.servedBytes))} note="since the proxies started" />
      <Tile label="Damaged objects" value={count(damaged)} note="taken out of the libraries" />
    </dl>
  );
}

const HEADS: readonly Head[] = [
  "Publication",
  "Publisher",
  "State",
  { text: "Size", num: true },
  "Holders",
  { text: "Served", num: true },
  "Published",
  { text: "Actions", hidden: true },
];

function Publications({ library, admin }: { library: LibraryResponse; admin: boolean }) {
  const labels = new Map(library.publishers.map(({ key, label }) => [key, label]));
  return (
    <Section title="Publications">
      {library.publications.length === 0 ? (
        <Empty>Nothing is published yet.</Empty>
      ) : (
        <DataTable label="Table of publications" className="cards" heads={HEADS}>
          {library.publications.map((row) => (
            <Row key={`${row.key}/${row.name}/${row.revision}`} row={row} label={labels.get(row.key)} admin={admin} />
          ))}
        </DataTable>
      )}
    </Section>
  );
}

function Row({ row, label, admin }: { row: PublicationRow; label: string | undefined; admin: boolean }) {
  const isReleased = row.state === "released";
  return (
    <tr>
      <th scope="row" data-label="Publication">
        {isReleased ? (
          <a href={row.address} target="_blank" rel="noreferrer">
            <b>{row.name}</b>
          </a>
        ) : (
          <b>{row.name}</b>
        )}
        <small>revision {row.revision}</small>
      </th>
      <td data-label="Publisher">
        <span title={row.key}>{label ?? `${row.key.slice(0, 8)}…`}</span>
      </td>
      <td data-label="State">
        <Tag tone={isReleased ? "good" : "warn"}>{row.state}</Tag>
        {isReleased && row.missingObjects > 0 ? (
          <small>
            <Tag tone="bad">{counted(row.missingObjects, "object")} missing</Tag>
          </small>
        ) : null}
      </td>
      <td data-label="Size" className="num">
        {bytes(row.bytes)}
        <small>{counted(row.files, "file")}</small>
      </td>
      <td data-label="Holders">
        <span title={row.holders.map(({ name }) => name).join(", ")}>{holdersOf(row)}</span>
      </td>
      <td data-label="Served" className="num">
        {bytes(row.servedBytes)}
      </td>
      <td data-label="Published">{clock(row.atMs, Date.now())}</td>
      <td className="row-actions">
        {isReleased ? <Share row={row} /> : null}
        {admin ? <Unpublish row={row} /> : null}
      </td>
    </tr>
  );
}

const HOLDERS_SHOWN = 3;

function holdersOf({ holders }: PublicationRow): string {
  if (holders.length === 0) return "none has all objects";
  const names = holders.slice(0, HOLDERS_SHOWN).map(({ name }) => name);
  const more = holders.length - names.length;
  return names.join(", ") + (more > 0 ? ` and ${more} more` : "");
}

function Share({ row }: { row: PublicationRow }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <Button size="compact-sm" variant="subtle" onClick={() => setOpen(true)}>
        Share
      </Button>
      <Dialog title={`Share ${row.name}`} opened={isOpen} close={() => setOpen(false)} size="lg">
        <Addresses address={row.address} embed={row.embed} />
      </Dialog>
    </>
  );
}

function Unpublish({ row }: { row: PublicationRow }) {
  const client = useQueryClient();
  const run = async (): Promise<void> => {
    await api.remove(under(under("/v1/publications", row.key), row.name));
    await client.invalidateQueries({ queryKey: ["library"] });
  };
  return (
    <DangerButton action="Unpublish" what={row.name} run={run}>
      Its address ends, and the proxies forget the objects that nothing else needs.
    </DangerButton>
  );
}
