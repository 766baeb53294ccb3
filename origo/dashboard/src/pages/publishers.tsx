/** Publishers: a part of the page Library. Who may publish, and how much. */
import { Button, NumberInput } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import type { LibraryResponse, PublisherRow } from "@tributary/contract/library-schema";
import { api, under } from "../api";
import { bytes, clock, counted } from "../format";
import { OneTimeCode } from "../one-time-code";
import { Confirm, DangerButton, DataTable, Empty, Section, Tag, type Head } from "../ui";

const HEADS: readonly Head[] = ["Publisher", "State", { text: "Used", num: true }, "Enrolled", "By"];
const ACTIONS: Head = { text: "Actions", hidden: true };
const MB = 1_000_000;

export function Publishers({ library, admin }: { library: LibraryResponse; admin: boolean }) {
  const { publishers, quotaBytesDefault } = library;
  return (
    <Section title="Publishers" aside={admin ? <NewCode /> : undefined}>
      {publishers.length === 0 ? (
        <Empty>Nobody may publish yet. Make a code for a publisher.</Empty>
      ) : (
        <DataTable label="Table of publishers" className="cards" heads={admin ? [...HEADS, ACTIONS] : HEADS}>
          {publishers.map((row) => (
            <Row key={row.key} row={row} quotaBytesDefault={quotaBytesDefault} admin={admin} />
          ))}
        </DataTable>
      )}
    </Section>
  );
}

function Row({ row, quotaBytesDefault, admin }: { row: PublisherRow; quotaBytesDefault: number; admin: boolean }) {
  const isRevoked = row.revokedAtMs !== null;
  return (
    <tr>
      <th scope="row" data-label="Publisher">
        <b>{row.label}</b>
        <small title={row.key}>{`${row.key.slice(0, 12)}…`}</small>
      </th>
      <td data-label="State">
        <Tag tone={isRevoked ? "bad" : "good"}>{isRevoked ? "revoked" : "may publish"}</Tag>
      </td>
      <td data-label="Used" className="num">
        {bytes(row.bytes)} of {bytes(row.quotaBytes ?? quotaBytesDefault)}
        <small>{counted(row.publications, "publication")}</small>
      </td>
      <td data-label="Enrolled">{clock(row.enrolledAtMs, Date.now())}</td>
      <td data-label="By">{row.isOwn ? "this dashboard" : row.author}</td>
      {admin ? (
        <td className="row-actions">
          {isRevoked ? null : <Quota row={row} quotaBytesDefault={quotaBytesDefault} />}
          {isRevoked || row.isOwn ? null : <Revoke row={row} />}
        </td>
      ) : null}
    </tr>
  );
}

function Quota({ row, quotaBytesDefault }: { row: PublisherRow; quotaBytesDefault: number }) {
  const client = useQueryClient();
  const [isAsked, setAsked] = useState(false);
  const [quota, setQuota] = useState<number | string>("");
  const ask = (): void => {
    setQuota(row.quotaBytes === null ? "" : row.quotaBytes / MB);
    setAsked(true);
  };
  const run = async (): Promise<void> => {
    const quotaBytes = quota === "" ? null : Math.round(Number(quota) * MB);
    await api.patch(under("/v1/publishers", row.key), { quotaBytes });
    await client.invalidateQueries({ queryKey: ["library"] });
  };
  return (
    <>
      <Button size="compact-sm" variant="subtle" onClick={ask}>
        Quota
      </Button>
      {isAsked ? (
        <Confirm title={`Quota of ${row.label}`} action="Set" run={run} close={() => setAsked(false)}>
          <NumberInput
            label="MB"
            description={`Empty: ${bytes(quotaBytesDefault)}, as the configuration says`}
            min={0}
            max={1e9}
            data-autofocus
            value={quota}
            onChange={setQuota}
          />
        </Confirm>
      ) : null}
    </>
  );
}

function Revoke({ row }: { row: PublisherRow }) {
  const client = useQueryClient();
  const run = async (): Promise<void> => {
    await api.remove(under("/v1/publishers", row.key));
    await client.invalidateQueries({ queryKey: ["library"] });
  };
  return (
    <DangerButton action="Revoke" what={row.label} run={run}>
      Its key is never let in again. What it has published stays until you unpublish it.
    </DangerButton>
  );
}

const NewCode = () => (
  <OneTimeCode
    title="Add a publisher"
    path="/v1/publishers"
    who="publisher"
    advice="The publisher runs this, with a file or a folder in place of VIDEO:"
    textOf={(code) => `npm run -s tributary -- publish VIDEO --origo ${location.origin} --code ${code}`}
  />
);
