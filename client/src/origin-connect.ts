/**
 * Connects to origins: trusts the certificates that the user trusts, speaks HTTP/2 where a server speaks nothing else,
 * and says in a sentence why there is no connection.
 */
import type { PeerCertificate } from "node:tls";
import { buildConnector } from "undici";
import { DownloadError } from "./errors";
import { faultOfAddress, lookupGuarded } from "./origin-guard";

/** A host that drops packets is given up after this. A later attempt may get through. */
const CONNECT_MS_MAX = 30_000;
const NO_COMMON_PROTOCOL = "ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL";

export interface Trust {
  /** Certificates of authorities in PEM. They take the place of those that Node knows. */
  ca?: string;
  /** Take every certificate. */
  insecure?: boolean;
}

let trust: Trust = {};
let connectors: ReturnType<typeof makeConnectors> | undefined;

/** From now on these certificates are taken. It holds for connections that are made later. */
export function trustOrigins(wanted: Trust): void {
  trust = wanted;
  connectors = undefined;
}

/** For undici and TLS: which certificates are taken. */
export function tlsOptions(): { ca?: string; rejectUnauthorized: boolean } {
  const { ca, insecure = false } = trust;
  return { ...(ca === undefined ? {} : { ca }), rejectUnauthorized: !insecure };
}

function makeConnectors() {
  const options = { ...tlsOptions(), lookup: lookupGuarded, timeout: CONNECT_MS_MAX };
  // undici offers HTTP/2 beside HTTP/1.1, and most servers would choose it. Its implementation of HTTP/1.1 is older.
  return { usual: buildConnector(options), withHttp2: buildConnector({ ...options, allowH2: true }) };
}

/** For undici: connects if the address may be asked. */
export const connectOrigin: buildConnector.connector = (options, callback) => {
  const refusal = faultOfAddress(options.hostname);
  if (refusal) return callback(refusal, null);
  connectors ??= makeConnectors();
  const { usual, withHttp2 } = connectors;
  const answer: buildConnector.Callback = (...[error, socket]) =>
    error ? callback(sentenceOf(error, options), null) : callback(null, socket);
  usual(options, (...result) => {
    const [error] = result;
    if (error && codeOf(error) === NO_COMMON_PROTOCOL) withHttp2(options, answer);
    else answer(...result);
  });
};

const UNKNOWN_AUTHORITY = "no authority that this program knows has signed it";
const CERTIFICATE_FAULTS: Record<string, string> = {
  DEPTH_ZERO_SELF_SIGNED_CERT: "the server has signed it itself",
  SELF_SIGNED_CERT_IN_CHAIN: UNKNOWN_AUTHORITY,
  UNABLE_TO_GET_ISSUER_CERT: UNKNOWN_AUTHORITY,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNKNOWN_AUTHORITY,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: `${UNKNOWN_AUTHORITY}, or the server leaves out a certificate between the two`,
  CERT_HAS_EXPIRED: "it has expired",
  CERT_NOT_YET_VALID: "it is not valid yet; look at the clock of this machine",
  CERT_REVOKED: "it was revoked",
  ERR_TLS_CERT_ALTNAME_INVALID: "it is for another host",
};
/** Another authority would not help. */
const NOT_BY_AUTHORITY = ["CERT_HAS_EXPIRED", "CERT_NOT_YET_VALID", "CERT_REVOKED", "ERR_TLS_CERT_ALTNAME_INVALID"];
const NETWORK_FAULTS: Record<string, string> = {
  ENOTFOUND: "the name of the host is not known",
  EAI_AGAIN: "the name of the host could not be looked up",
  ECONNREFUSED: "nothing listens on that port",
  EHOSTUNREACH: "there is no way to the host",
  ENETUNREACH: "there is no way to its network",
  ETIMEDOUT: "the host does not answer",
  UND_ERR_CONNECT_TIMEOUT: "the host does not answer",
  ERR_SSL_WRONG_VERSION_NUMBER: "the server speaks no TLS there, so maybe the address begins with http",
  ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION: "the server speaks a version of TLS that is too old",
  ERR_SSL_UNSUPPORTED_PROTOCOL: "the server speaks a version of TLS that is too old",
  ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE: "the server refuses the TLS handshake",
};

/** The same for a connection through an HTTP proxy, which undici makes. */
export function explained(error: unknown, url: string): unknown {
  if (!(error instanceof Error) || error instanceof ConnectError || !(codeOf(error) in CERTIFICATE_FAULTS))
    return error;
  return sentenceOf(error, new URL(url));
}

class ConnectError extends Error {
  override readonly name = "ConnectError";
  constructor(
    readonly code: string,
    message: string,
  ) {
    super(message);
  }
}

/** An error with the same code, and with a message that says what failed, where, and what helps. */
function sentenceOf(error: Error, { hostname, port, protocol }: Pick<URL, "hostname" | "port" | "protocol">): Error {
  if (error instanceof DownloadError) return error;
  const code = codeOf(error);
  const where = `${hostname}:${port || (protocol === "https:" ? 443 : 80)}`;
  const doubt = CERTIFICATE_FAULTS[code];
  const reason = NETWORK_FAULTS[code] ?? reasonOf(error);
  const shownCode = code === "" ? "" : ` (${code})`;
  const message =
    doubt === undefined
      ? `No connection to ${where}: ${reason}${shownCode}.`
      : `The certificate of ${where} is not trusted: ${doubt}${namesOf(error)}${shownCode}. ${helpFor(code)}`;
  return new ConnectError(code, message);
}

function helpFor(code: string): string {
  const authority = NOT_BY_AUTHORITY.includes(code) ? "" : "--cacert FILE names an authority to trust, and ";
  return `${authority}${authority === "" ? "The option --insecure" : "--insecure"} takes any certificate.`;
}

/** OpenSSL's own messages have addresses and lines of source files in them. */
function reasonOf(error: Error): string {
  if ("reason" in error && typeof error.reason === "string") return error.reason;
  return error.message;
}

/** The hosts for which the certificate is. */
function namesOf(error: Error): string {
  if (codeOf(error) !== "ERR_TLS_CERT_ALTNAME_INVALID") return "";
  const { subjectaltname } = ("cert" in error ? error.cert : {}) as Partial<PeerCertificate>;
  return subjectaltname === undefined ? "" : `, namely ${subjectaltname.slice(0, 200)}`;
}

/** All addresses of a host may have failed, each with its own error. */
function codeOf(error: Error): string {
  if (error instanceof AggregateError && error.errors[0] instanceof Error) return codeOf(error.errors[0]);
  return "code" in error ? String(error.code) : "";
}
