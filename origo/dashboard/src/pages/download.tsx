/**
 * Download: everything about one download: its facts, the arrival of its packets (as in the paper's Figs. 8 and 9),
 * when its generations filled, and what each proxy sent. Sums that do not match are shown as alarms.
 */
import { Button } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import type { Trace } from "@tributary/contract/query-schema";
import type { DownloadRecord, RecordProxy } from "@tributary/contract/schema";
import { accountsOf, gapPackets, speedWithoutServer, type PacketSums } from "../accounts";
import { api, Fault, saveFile, under } from "../api";
import { EChart } from "../chart/echart";
import { useLook } from "../chart/look";
import { arrivalsOption, generationsOption } from "../chart/trace";
import { bytes, clock, count, NONE, quantity, rate, ratio, seconds } from "../format";
import { experimentsQuery } from "../fields";
import { linkTo } from "../hash";
import type { PageProps } from "../page-props";
import { DataTable, Empty, Fact, Failure, Page, Section, Tag, Tile, type Head } from "../ui";

const KINDS = ["innovative", "duplicate", "late", "rejected"] as const;

export default function DownloadPage({ rest: id }: PageProps) {
  const { data: record, error } = useQuery({
    queryKey: ["record", id],
    queryFn: () => api.get<DownloadRecord>(under("/v1/records", id)),
    staleTime: Infinity,
  });
  const trace = useQuery({ queryKey: ["trace", id], queryFn: () => traceOf(id), staleTime: Infinity });
  const back = (
    <a
      href={linkTo("downloads")}
      onClick={(event) => {
        if (window.history.length > 1) {
          event.preventDefault();
          window.history.back();
        }
      }}
    >
      ← All downloads
    </a>
  );
  if (record === undefined)
    return (
      <Page title="Download" aside={back}>
        <Failure error={error} />
      </Page>
    );
  const save = (): void =>
    saveFile(
      `download-${record.id}.json`,
      new Blob([JSON.stringify({ record, trace: trace.data ?? null }, null, 2)], { type: "application/json" }),
    );
  return (
    <Page
      title="Download"
      aside={
        <div className="page-actions">
          {back}
          <Button variant="default" size="compact-md" onClick={save}>
            Save as JSON
          </Button>
        </div>
      }
    >
      <Figures record={record} />
      <Facts record={record} />
      <Section title="Arrival of the packets">
        <Failure error={trace.error} />
        {trace.data ? <Timeline record={record} trace={trace.data} /> : null}
        {trace.data === null ? (
          <Empty>
            This download was not traced. Clients report the arrival of each packet only for some of their downloads.
          </Empty>
        ) : null}
      </Section>
      <Section title="What each proxy sent">
        <Breakdown record={record} />
      </Section>
    </Page>
  );
}

/** Resolves to null for a download that was not traced. */
async function traceOf(id: string): Promise<Trace | null> {
  try {
    return await api.get<Trace>(`${under("/v1/records", id)}/trace`);
  } catch (error) {
    if (error instanceof Fault && error.status === 404) return null;
    throw error;
  }
}

function Figures({ record }: { record: DownloadRecord }) {
  return (
    <dl className="tiles">
      <Tile label="Mode" value={record.mode} note={`up to ${count(record.connections)} proxies`} />
      <Tile label="Outcome" value={record.outcome} note={record.status > 0 ? `HTTP ${record.status}` : "no answer"} />
      <Tile label="Net size" value={bytes(record.netBytes)} note={`${bytes(record.grossBytes)} gross`} />
      <Tile
        label="Duration"
        value={seconds(record.durationMs)}
        note={`server fetch: ${seconds(record.serverFetchMs)}`}
      />
      <Tile
        label="Goodput"
        value={rate(record.goodputBytesPerSec)}
        note={`${rate(speedWithoutServer(record))} without fetch`}
      />
      <Tile label="Normalized goodput" value={ratio(record.normalizedGoodput)} note="net size / gross size" />
    </dl>
  );
}

function Facts({ record }: { record: DownloadRecord }) {
  const { range, error, fallback } = record;
  const { data } = useQuery(experimentsQuery);
  const nameOf = (id: string): string => data?.experiments.find((each) => each.id === id)?.name ?? id;
  const coding = [
    record.generationSize === undefined ? "" : `${record.generationSize} packets per generation`,
    record.windowPackets === undefined ? "" : `window of ${record.windowPackets} packets`,
    record.symbolBytes === undefined ? "" : `${record.symbolBytes} B per symbol`,
  ]
    .filter((part) => part !== "")
    .join(" · ");
  return (
    <Section title="Details">
      <dl className="facts">
        <Fact name="Address">{record.url}</Fact>
        <Fact name="Range">
          {range === undefined ? "the whole file" : `bytes ${count(range.start)} to ${count(range.end)}`}
        </Fact>
        <Fact name="Started">{clock(record.startedAtMs, Date.now())}</Fact>
        <Fact name="Error">{error ? <Tag tone="bad">{`${error.kind}: ${error.message}`}</Tag> : null}</Fact>
        <Fact name="Fallback">
          {fallback ? (
            <Tag tone="warn">
              {(fallback.bytes > 0 ? `${bytes(fallback.bytes)} directly from the origin: ` : "") +
                `${fallback.kind}: ${fallback.message}`}
            </Tag>
          ) : null}
        </Fact>
        <Fact name="First packet">{record.firstPacketMs === undefined ? null : seconds(record.firstPacketMs)}</Fact>
        <Fact name="First byte">{seconds(record.firstByteMs)}</Fact>
        <Fact name="Coding">{coding}</Fact>
        <Fact name="Configuration">
          {record.configVersion === undefined ? null : `version ${record.configVersion}`}
        </Fact>
        <Fact name="Experiments">
          {(record.experiments ?? []).map(({ id, arm }) => `${nameOf(id)}: ${arm}`).join(" · ")}
        </Fact>
        <Fact name="Comment">{record.comment}</Fact>
        <Fact name="Viewer's comment">{record.userComment}</Fact>
        <Fact name="Player and system">
          {[record.player, record.agent, record.os].filter((part) => part !== undefined).join(" · ")}
        </Fact>
        <Fact name="Codec engine">{record.engine}</Fact>
        <Fact name="Source">{record.source}</Fact>
        <Fact name="Purpose">{record.purpose}</Fact>
        <Fact name="Client id">{record.clientId}</Fact>
        <Fact name="Record id">{record.id}</Fact>
        <Fact name="SHA-256">{record.sha256}</Fact>
      </dl>
    </Section>
  );
}

function Timeline({ record, trace }: { record: DownloadRecord; trace: Trace }) {
  const look = useLook();
  const names = useMemo(() => record.proxies.map((proxy) => proxy.name ?? proxy.id), [record]);
  const arrivals = useMemo(() => arrivalsOption(trace, names, look), [trace, names, look]);
  const generations = useMemo(() => generationsOption(trace, look), [trace, look]);
  return (
    <>
      <p className="muted">
        Each dot is a packet. Each proxy has a lane; in a lane, later generations are higher. A tick at the bottom of a
        lane is feedback that the client sent to that proxy.
      </p>
      <EChart
        option={arrivals}
        height={90 + 78 * Math.max(1, names.length)}
        label={`Arrival of ${trace.packets.length} packets from ${names.length} proxies over time`}
      />
      {trace.generationCount > 0 ? (
        <>
          <h3>When each generation filled</h3>
          <p className="muted">Each bar goes from the first to the last innovative packet of a generation.</p>
          <EChart
            option={generations}
            height={Math.min(420, 110 + 9 * trace.generationCount)}
            label={`When each of ${trace.generationCount} generations was filled`}
          />
        </>
      ) : null}
    </>
  );
}

const PACKET_HEADS: readonly Head[] = [
  "Proxy",
  { text: "Bytes", num: true },
  "Kinds of packets",
  { text: "innovative", num: true },
  { text: "+ duplicate", num: true },
  { text: "+ late", num: true },
  { text: "+ rejected", num: true },
  { text: "= packets", num: true },
  "Check",
  { text: "Lost", num: true },
  { text: "RTT", num: true },
  "State",
];

function Breakdown({ record }: { record: DownloadRecord }) {
  const accounts = accountsOf(record);
  const most = Math.max(1, ...record.proxies.map((proxy) => proxy.packets));
  const terms = [
    ...(record.proxies.length > 0 ? [`${count(accounts.total.bytes)} bytes from proxies`] : []),
    ...(accounts.directBytes > 0 || record.proxies.length === 0
      ? [`${count(accounts.directBytes)} bytes directly from the origin`]
      : []),
  ];
  return (
    <>
      {record.proxies.length > 0 ? (
        <DataTable
          label="Table of packets by proxy"
          className="cards breakdown"
          heads={PACKET_HEADS}
          foot={
            record.proxies.length > 1 ? (
              <tr>
                <th scope="row" data-label="Proxy">
                  all proxies
                </th>
                <SumCells sums={accounts.total} bar={null} />
                <td />
                <td />
              </tr>
            ) : null
          }
        >
          {record.proxies.map((proxy) => (
            <ProxyRow key={proxy.id} proxy={proxy} most={most} />
          ))}
        </DataTable>
      ) : null}
      <p className="sum" data-testid="byte-sum">
        {terms.join(" + ")} = {count(record.grossBytes)} bytes gross <Check gap={accounts.gapBytes} unit="bytes" />
        <br />
        {count(record.netBytes)} bytes net, so {count(record.grossBytes - record.netBytes)} bytes of overhead
      </p>
    </>
  );
}

function ProxyRow({ proxy, most }: { proxy: RecordProxy; most: number }) {
  const small = [proxy.name === undefined ? undefined : proxy.id.slice(0, 6), proxy.transport]
    .filter(Boolean)
    .join(" · ");
  return (
    <tr>
      <th scope="row" data-label="Proxy">
        <b>{proxy.name ?? proxy.id}</b>
        {small === "" ? null : <small>{small}</small>}
      </th>
      <SumCells sums={proxy} bar={<Bar proxy={proxy} most={most} />} />
      <td data-label="RTT" className="num">
        {proxy.rttMs === null ? NONE : quantity(proxy.rttMs, "ms")}
      </td>
      <td data-label="State">
        {proxy.state === "used" ? (
          "used"
        ) : (
          <Tag tone="bad">{proxy.error ? `failed: ${proxy.error.kind}: ${proxy.error.message}` : "failed"}</Tag>
        )}
      </td>
    </tr>
  );
}

function SumCells({ sums, bar }: { sums: PacketSums; bar: React.ReactNode }) {
  return (
    <>
      <td data-label="Bytes" className="num">
        {count(sums.bytes)}
      </td>
      <td data-label="Kinds of packets">{bar}</td>
      {KINDS.map((kind) => (
        <td key={kind} data-label={kind} className="num">
          {count(sums[kind])}
        </td>
      ))}
      <td data-label="= packets" className="num">
        <b>{count(sums.packets)}</b>
      </td>
      <td data-label="Check">
        <Check gap={gapPackets(sums)} unit="packets" />
      </td>
      <td data-label="Lost" className="num">
        {count(sums.lost)}
      </td>
    </>
  );
}

/** Says whether the sum before it is right. */
function Check({ gap, unit }: { gap: number; unit: string }) {
  return gap === 0 ? (
    <Tag tone="good" title="The sum is right">
      ✓ equal
    </Tag>
  ) : (
    <span role="alert">
      <Tag tone="bad">{`differs by ${count(Math.abs(gap))} ${unit}`}</Tag>
    </span>
  );
}

/** A bar of one proxy's packets by kind. Its length is relative to the proxy that sent the most packets. */
function Bar({ proxy, most }: { proxy: RecordProxy; most: number }) {
  const { packet } = useLook();
  return (
    <span className="bar" aria-hidden="true">
      <span style={{ width: `${(100 * proxy.packets) / most}%` }}>
        {KINDS.filter((kind) => proxy[kind] > 0).map((kind) => (
          <i
            key={kind}
            title={`${kind}: ${count(proxy[kind])}`}
            style={{ flexGrow: proxy[kind], background: packet[kind] }}
          />
        ))}
      </span>
    </span>
  );
}
