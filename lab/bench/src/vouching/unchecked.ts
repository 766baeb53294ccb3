/**
 * Preloaded into a client (node --require), also into its worker: the client asks proxies for neither digests nor
 * proofs, hashes nothing and believes every packet. A published file comes in the same symbols as with proofs.
 */
import * as protocol from "@tributary/protocol";

class Unchecked extends protocol.Receiver {
  constructor(options: protocol.ReceiverOptions) {
    const symbolBytes = options.symbolBytes ?? (options.object && protocol.LIMITS.objectSymbolBytes);
    const unchecked = { ...options, ...(symbolBytes === undefined ? {} : { symbolBytes }) };
    delete unchecked.hash;
    delete unchecked.object;
    super(unchecked);
  }
}

require.cache[require.resolve("@tributary/protocol")]!.exports = { ...protocol, Receiver: Unchecked };
