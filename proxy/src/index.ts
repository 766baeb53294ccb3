/**
 * The public door of the package: a proxy that runs inside another process (for tests and labs), its end of each
 * transport, and its rings of ready symbols. main.ts runs a proxy as its own process.
 */
export type { Channel, ChannelHandlers, OpenSession } from "./channel";
export { Costs } from "./coder/costs";
export { SymbolRings } from "./coder/rings";
export { parseConfig, type ProxyConfig } from "./config";
export { jsonLog, type Log } from "./log";
export { Proxy, PROXY_VERSION } from "./proxy";
export { pickUdpPort, startRtc } from "./rtc";
export { UdpEdge } from "./udp";
export { WebTransportEdge } from "./webtransport";
