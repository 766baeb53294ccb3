/** The proxy's public door: a proxy to run inside another process (tests, labs). As a process of its own: main.ts. */
export { parseConfig, type ProxyConfig } from "./config";
export { jsonLog, type Log } from "./log";
export { Proxy, PROXY_VERSION } from "./proxy";
