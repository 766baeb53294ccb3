/**
 * The proxy's public door: a proxy to run inside another process (tests, labs), and its
 * end of each transport. As a process of its own: main.ts.
 */
export type { Channel, ChannelHandlers, OpenSession } from "./channel";
export { parseConfig, type ProxyConfig } from "./config";
export { jsonLog, type Log } from "./log";
export { Proxy, PROXY_VERSION } from "./proxy";
export { pickUdpPort, startRtc } from "./rtc";
export { UdpEdge } from "./udp";
export { WebTransportEdge } from "./webtransport";
