/**
 * OpenAPI: writes the OpenAPI 3.1 document of the HTTP API from the descriptions of the endpoints. So the document
 * cannot differ from what Origo serves.
 */
import { zodToJsonSchema } from "zod-to-json-schema";
import type { z } from "zod";
import type { Access, Endpoint } from "./http";
import { ErrorResponse } from "@tributary/contract/schema";

type Json = Record<string, unknown>;

const ACCESS: Record<Access, string> = {
  open: "Anyone may call this, also extensions and web pages of the origins that the operator allows.",
  web: "Anyone may call this, also web pages of any origin.",
  public: "Anyone may call this, but web pages of this origin only.",
  viewer: "Everyone who is signed in may call this.",
  admin: "Only admins may call this. A change needs the header x-csrf-token.",
};

export function openApiOf(endpoints: readonly Endpoint[], version: string): Json {
  const paths: Record<string, Json> = {};
  for (const each of endpoints) {
    const path = each.path.replace(/[:*](\w+)/g, "{$1}");
    paths[path] = { ...paths[path], [each.method]: operationOf(each) };
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Origo",
      version,
      description: "The registry of proxies, the configuration, the records and their analysis in Tributary.",
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    paths,
    components: {
      schemas: { Error: schemaOf(ErrorResponse, "output") },
      securitySchemes: {
        login: { type: "apiKey", in: "cookie", name: "tributary_login" },
        csrf: { type: "apiKey", in: "header", name: "x-csrf-token" },
      },
    },
  };
}

function operationOf(each: Endpoint): Json {
  const { access, method, query, answer } = each;
  const status = String(each.status ?? (answer === undefined ? 204 : 200));
  const content =
    typeof answer === "string"
      ? { [answer]: {} }
      : answer && { "application/json": { schema: schemaOf(answer, "output") } };
  return {
    summary: each.summary,
    description: ACCESS[access],
    ...(access === "viewer" || access === "admin"
      ? { security: [{ login: [], ...(access === "admin" && method !== "get" ? { csrf: [] } : {}) }] }
      : {}),
    parameters: [...pathParameters(each.path), ...(query ? queryParameters(query) : [])],
    ...bodyOf(each),
    responses: {
      [status]: { description: "Success", ...(content ? { content } : {}) },
      default: {
        description: "The request was refused, or it failed",
        content: { "application/json": { schema: { $ref: "#/components/schemas/Error" } } },
      },
    },
  };
}

function bodyOf({ body, rawBody }: Endpoint): Json {
  if (body)
    return { requestBody: { required: true, content: { "application/json": { schema: schemaOf(body, "input") } } } };
  return rawBody === undefined ? {} : { requestBody: { required: true, content: { [rawBody]: {} } } };
}

function pathParameters(path: string): Json[] {
  return [...path.matchAll(/[:*](\w+)/g)].map(([, name]) => ({
    name,
    in: "path",
    required: true,
    schema: { type: "string" },
  }));
}

function queryParameters(query: z.ZodTypeAny): Json[] {
  const { properties = {}, required = [] } = schemaOf(query, "input") as {
    properties?: Record<string, unknown>;
    required?: string[];
  };
  return Object.entries(properties).map(([name, schema]) => ({
    name,
    in: "query",
    required: required.includes(name),
    schema,
  }));
}

function schemaOf(shape: z.ZodTypeAny, pipeStrategy: "input" | "output"): Json {
  const schema = zodToJsonSchema(shape, { target: "jsonSchema2019-09", $refStrategy: "none", pipeStrategy }) as Json;
  delete schema["$schema"];
  return schema;
}
