/** ProxyClientLib: the parts that are the same in every environment. `./node` and `./browser` make clients. */
export {
  MODES,
  TRANSPORT_OPTIONS,
  type TransportOption,
  type Download,
  type GetOptions,
  type LiveProxy,
  type LiveStats,
  type Vouched,
  type Mode,
  type OwnRest,
  type ProxyInfo,
  type Source,
} from "./api";
export { ProxyClient, type ProxyClientOptions } from "./client";
export { DownloadError, RequestError } from "./errors";
export type { FromEngine, ToEngine } from "./messages";
export type { Channel, ChannelOptions, EngineWorker, Hasher, Platform, Transport } from "./platform";
export type { SeenRevisions } from "./published/revisions";
export { SETTINGS_DEFAULT, type Settings } from "./settings";
export type { DownloadRecord, ErrorReport } from "@tributary/contract/schema";
export type { ByteRange, ResponseHead } from "@tributary/contract";
