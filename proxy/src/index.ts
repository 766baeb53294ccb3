/**
 * The public door of the package: a proxy that runs inside another process (for tests and labs), and its end of each
 * transport. main.ts runs a proxy as its own process.
 */
export type { Channel, ChannelHandlers, OpenSession } from "./channel";
export { parseConfig, type ProxyConfig } from "./config";
export { jsonLog, type Log } from "./log";
export { Proxy, PROXY_VERSION } from "./proxy";
export { pickUdpPort, startRtc } from "./rtc";
export { UdpEdge } from "./udp";
export { WebTransportEdge } from "./webtransport";
