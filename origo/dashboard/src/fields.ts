/** Fields: the list of a download's characteristics, as Origo gives it, and how it is offered for choice. */
import { queryOptions, useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import type { Experiment } from "@tributary/contract/admin-schema";
import type { Field, FieldsResponse } from "@tributary/contract/query-schema";
import { api } from "./api";

export const experimentsQuery = queryOptions({
  queryKey: ["experiments"],
  queryFn: () => api.get<{ experiments: Experiment[] }>("/v1/experiments"),
});

/** Besides Origo's list, the arm that a download drew of each experiment. */
export function useFields(): Field[] {
  const { data } = useQuery({
    queryKey: ["fields"],
    queryFn: () => api.get<FieldsResponse>("/v1/fields"),
    staleTime: Infinity,
  });
  const { data: drawn } = useQuery(experimentsQuery);
  return useMemo(() => [...(data?.fields ?? []), ...(drawn?.experiments ?? []).map(armField)], [data, drawn]);
}

const armField = ({ id, name, arms }: Experiment): Field => ({
  name: `arm:${id}`,
  label: `Arm of ${name}`,
  type: "text",
  unit: null,
  origin: "basic",
  help: `The arm of the experiment ${name} that the download drew.`,
  values: arms.map((arm) => arm.name),
});

/** For a Select, basic characteristics before derived ones. */
export function fieldOptions(fields: readonly Field[]): { group: string; items: { value: string; label: string }[] }[] {
  const items = (origin: Field["origin"]) =>
    fields
      .filter((field) => field.origin === origin)
      .map((field) => ({
        value: field.name,
        label: field.unit && field.type === "number" ? `${field.label} (${field.unit})` : field.label,
      }));
  return [
    { group: "Derived", items: items("derived") },
    { group: "Basic", items: items("basic") },
  ].filter((group) => group.items.length > 0);
}
