/** Enrolment: a part of the page Fleet. Which proxies may connect; admins let new ones in and revoke others. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import type { EnrolledProxy, EnrolmentResponse } from "@tributary/contract/admin-schema";
import { api, under } from "../api";
import { clock } from "../format";
import { useLogin } from "../login";
import { OneTimeCode } from "../one-time-code";
import { DangerButton, DataTable, Empty, Failure, Section, Tag, type Head } from "../ui";

const HEADS: readonly Head[] = ["Proxy", "State", "Enrolled", "By", "Last connected"];
const ACTIONS: Head = { text: "Actions", hidden: true };

export function Enrolment({ liveIds }: { liveIds: ReadonlySet<string> }) {
  const { admin } = useLogin();
  const { data, error } = useQuery({
    queryKey: ["enrolment", [...liveIds].sort().join()],
    queryFn: () => api.get<EnrolmentResponse>("/v1/enrolment"),
    placeholderData: (before) => before,
  });
  const proxies = data?.proxies ?? [];
  return (
    <Section title="Enrolled proxies" aside={admin ? <NewCode /> : undefined}>
      <Failure error={error} />
      {data && proxies.length === 0 ? (
        <Empty>No proxy is enrolled. Make a code and start a proxy with it.</Empty>
      ) : null}
      {proxies.length > 0 ? (
        <DataTable label="Table of enrolled proxies" className="cards" heads={admin ? [...HEADS, ACTIONS] : HEADS}>
          {proxies.map((proxy) => (
            <Row key={proxy.id} proxy={proxy} isLive={liveIds.has(proxy.id)} admin={admin} />
          ))}
        </DataTable>
      ) : null}
    </Section>
  );
}

function Row({ proxy, isLive, admin }: { proxy: EnrolledProxy; isLive: boolean; admin: boolean }) {
  const isRevoked = proxy.revokedAtMs !== null;
  return (
    <tr>
      <th scope="row" data-label="Proxy">
        <b>{proxy.name}</b>
        <small>{proxy.id}</small>
      </th>
      <td data-label="State">
        {isRevoked ? (
          <Tag tone="bad">revoked</Tag>
        ) : (
          <Tag tone={isLive ? "good" : "plain"}>{isLive ? "live" : "away"}</Tag>
        )}
      </td>
      <td data-label="Enrolled">{clock(proxy.enrolledAtMs, Date.now())}</td>
      <td data-label="By">{proxy.author}</td>
      <td data-label="Last connected">{clock(proxy.connectedAtMs, Date.now())}</td>
      {admin ? <td className="actions">{isRevoked ? null : <Revoke proxy={proxy} />}</td> : null}
    </tr>
  );
}

function Revoke({ proxy }: { proxy: EnrolledProxy }) {
  const client = useQueryClient();
  const run = async (): Promise<void> => {
    await api.remove(under("/v1/enrolment", proxy.id));
    await Promise.all(["enrolment", "fleet"].map((key) => client.invalidateQueries({ queryKey: [key] })));
  };
  return (
    <DangerButton action="Revoke" what={proxy.name} run={run}>
      It is disconnected now, and its key is never let in again. Its name is free for another proxy.
    </DangerButton>
  );
}

const NewCode = () => (
  <OneTimeCode
    title="Enrol a proxy"
    path="/v1/enrolment"
    who="proxy"
    advice="Start the proxy with these variables, and with DATA_DIR set to a folder where it keeps its key:"
    textOf={(code) => `ORIGO_URL=${location.origin} ORIGO_CODE=${code}`}
  />
);
