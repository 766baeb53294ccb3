/** Errors: the errors that clients and proxies reported, one row for each cause, the latest first. */
import { Button } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import type { ErrorsResponse } from "@tributary/contract/schema";
import { api } from "../api";
import { causesOf, messageOf, type Cause } from "../causes";
import { clock, count, NONE } from "../format";
import { pollMs } from "../live";
import type { PageProps } from "../page-props";
import { DataTable, Empty, Failure, Page, Tag } from "../ui";

const PER_PAGE = 100;

export default function ErrorsPage(_props: PageProps) {
  const list = useInfiniteQuery({
    queryKey: ["errors"],
    initialPageParam: "",
    refetchInterval: pollMs(false, 5000),
    queryFn: ({ pageParam }) =>
      api.get<ErrorsResponse>(`/v1/errors?limit=${PER_PAGE}${pageParam === "" ? "" : `&before=${pageParam}`}`),
    getNextPageParam: (page) => page.next,
  });
  const errors = list.data?.pages.flatMap((page) => page.errors) ?? [];
  return (
    <Page title="Errors">
      <Failure error={list.error} />
      {list.data && errors.length === 0 ? <Empty>No error was reported.</Empty> : null}
      {errors.length > 0 ? (
        <DataTable
          label="Table of errors"
          className="cards"
          framed
          heads={["Latest", { text: "Times", num: true }, "Source", "Kind", "Message", "Proxies", "Address", "Client"]}
        >
          {causesOf(errors).map((cause) => (
            <Row key={cause.latest.id} cause={cause} />
          ))}
        </DataTable>
      ) : null}
      {list.hasNextPage ? (
        <div className="more">
          <Button variant="default" loading={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
            Show more
          </Button>
        </div>
      ) : null}
    </Page>
  );
}

function Row({ cause: { latest: error, count: times, proxies, clientIds, ledTo } }: { cause: Cause }) {
  return (
    <tr>
      <td data-label="Latest" className="short">
        {clock(error.atMs, Date.now())}
      </td>
      <td data-label="Times" className="num">
        {count(times)}
      </td>
      <td data-label="Source" className="short">
        {error.source}
      </td>
      <td data-label="Kind">
        <Tag tone="bad">{error.kind}</Tag>
        {ledTo === undefined ? null : <Tag tone="warn">{ledTo}</Tag>}
      </td>
      <td data-label="Message" className="long">
        {messageOf(error).text}
      </td>
      <td data-label="Proxies">{proxies.length === 0 ? NONE : proxies.join(", ")}</td>
      <td data-label="Address" className="long">
        {error.url ?? NONE}
      </td>
      <td data-label="Client" className="short">
        <span title={clientIds.join(", ")}>
          {clientIds.length > 1 ? `${count(clientIds.length)} clients` : (clientIds[0]?.slice(0, 8) ?? NONE)}
        </span>
      </td>
    </tr>
  );
}
