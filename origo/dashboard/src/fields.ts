/** Fields: the list of a download's characteristics, as Origo gives it, and how it is offered for choice. */
import { useQuery } from "@tanstack/react-query";
import type { Field, FieldsResponse } from "../../src/query-schema";
import { api } from "./api";

export function useFields(): Field[] {
  const { data } = useQuery({ queryKey: ["fields"], queryFn: () => api.get<FieldsResponse>("/v1/fields"), staleTime: Infinity });
  return data?.fields ?? [];
}

/** For a Select, basic characteristics before derived ones. */
export function fieldOptions(fields: readonly Field[]): { group: string; items: { value: string; label: string }[] }[] {
  const items = (origin: Field["origin"]) => fields.filter((field) => field.origin === origin)
    .map((field) => ({ value: field.name, label: field.unit && field.type === "number" ? `${field.label} (${field.unit})` : field.label }));
  return [{ group: "Derived", items: items("derived") }, { group: "Basic", items: items("basic") }].filter((group) => group.items.length > 0);
}
