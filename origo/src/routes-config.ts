/** The endpoints for the configuration and the experiments, for the dashboard and for clients. */
import {
  ClientConfig,
  ConfigChange,
  ConfigHistory,
  ConfigResponse,
  Experiment,
  ExperimentChange,
  ExperimentsResponse,
  NewExperiment,
} from "@tributary/contract/admin-schema";
import type { Configuration } from "./configuration";
import { endpoint, type Endpoint } from "./http";
import { SiteRules } from "@tributary/contract/schema";
import { readSiteRules } from "./site-rules";

export interface ConfigOptions {
  configuration: Configuration;
  siteRulesFile: string;
}

export const configEndpoints = ({ configuration, siteRulesFile }: ConfigOptions): Endpoint[] => [
  endpoint({
    method: "get",
    path: "/v1/config",
    access: "viewer",
    summary: "List all settings and their values",
    answer: ConfigResponse,
    handle: () => configuration.describe(),
  }),
  endpoint({
    method: "put",
    path: "/v1/config",
    access: "admin",
    summary: "Make a new version of the configuration",
    body: ConfigChange,
    answer: ConfigResponse,
    handle: ({ body, author }) => configuration.change(author, body),
  }),
  endpoint({
    method: "get",
    path: "/v1/config/history",
    access: "viewer",
    summary: "List the versions of the configuration, newest first",
    answer: ConfigHistory,
    handle: () => configuration.history(),
  }),
  endpoint({
    method: "get",
    path: "/v1/client-config",
    access: "open",
    summary: "Get the settings and the experiments for clients",
    answer: ClientConfig,
    handle: ({ response }) => {
      response.set("Cache-Control", "no-store");
      return configuration.forClients();
    },
  }),
  endpoint({
    method: "get",
    path: "/v1/site-rules",
    access: "open",
    summary: "Get the rules by which the extension finds more media",
    answer: SiteRules,
    handle: () => readSiteRules(siteRulesFile),
  }),
  endpoint({
    method: "get",
    path: "/v1/experiments",
    access: "viewer",
    summary: "List the experiments, newest first",
    answer: ExperimentsResponse,
    handle: async () => ({ experiments: await configuration.experiments() }),
  }),
  endpoint({
    method: "post",
    path: "/v1/experiments",
    access: "admin",
    summary: "Make a draft of an experiment",
    body: NewExperiment,
    answer: Experiment,
    status: 201,
    handle: ({ body, author }) => configuration.addExperiment(author, body),
  }),
  endpoint({
    method: "patch",
    path: "/v1/experiments/:id",
    access: "admin",
    summary: "Start or stop an experiment",
    body: ExperimentChange,
    answer: Experiment,
    handle: ({ params: { id = "" }, body }) => configuration.moveExperiment(id, body.state),
  }),
];
