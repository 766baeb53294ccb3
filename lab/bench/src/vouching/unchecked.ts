/**
 * Preloaded into a client (node --require), also into its worker: the client asks proxies for no digests, hashes
 * nothing and believes every packet. Downloads of a site only: a published file cannot be had without proofs.
 */
import * as protocol from "@tributary/protocol";

class Unchecked extends protocol.Receiver {
  constructor(options: protocol.ReceiverOptions) {
    const unchecked = { ...options };
    delete unchecked.hash;
    super(unchecked);
  }
}

require.cache[require.resolve("@tributary/protocol")]!.exports = { ...protocol, Receiver: Unchecked };
