/** Errors: the errors that clients and proxies reported, newest first. */
import { Button } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import type { ErrorReport, ErrorsResponse } from "@tributary/contract/schema";
import { api } from "../api";
import { clock, NONE } from "../format";
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
          heads={["Time", "Source", "Kind", "Message", "Address", "Client"]}
        >
          {errors.map((error) => (
            <Row key={error.id} error={error} />
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

function Row({ error }: { error: ErrorReport }) {
  return (
    <tr>
      <td data-label="Time">{clock(error.atMs, Date.now())}</td>
      <td data-label="Source">{error.source}</td>
      <td data-label="Kind">
        <Tag tone="bad">{error.kind}</Tag>
        {error.ledTo === undefined ? null : <Tag tone="warn">{error.ledTo}</Tag>}
      </td>
      <td data-label="Message" className="long">
        {error.message}
      </td>
      <td data-label="Address" className="long">
        {error.url ?? NONE}
      </td>
      <td data-label="Client">
        <span title={error.clientId}>{error.clientId?.slice(0, 8) ?? NONE}</span>
      </td>
    </tr>
  );
}
