/** Preloaded into a proxy: the DNS servers of its resolvers are at SILENT_DNS, where nobody answers. */
import dns from "node:dns/promises";

dns.Resolver = class extends dns.Resolver {
  constructor(options) {
    super(options);
    this.setServers([process.env.SILENT_DNS]);
  }
};
