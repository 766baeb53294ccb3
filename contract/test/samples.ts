/** Valid messages for the tests, with fields to override. */
import { randomUUID } from "node:crypto";
import type { DownloadRecord, ErrorReport, ProxyHello, ProxyStatus } from "../src/schema";

export function helloOf(fields: Partial<ProxyHello> = {}): ProxyHello {
  return {
    name: "proxy-1",
    url: "http://127.0.0.1:7611",
    version: "0.1.0",
    engine: "native/avx2",
    udpPort: 7611,
    rateBytesPerSec: 896_000,
    startedAtMs: 1_790_000_000_000,
    ...fields,
  };
}

export function statusOf(fields: Partial<ProxyStatus> = {}): ProxyStatus {
  return {
    sessions: 1,
    activeRequests: 2,
    sentBytes: 1000,
    sentPackets: 1,
    originBytes: 500,
    cacheBytes: 400,
    cacheHits: 3,
    rejectedMessages: 0,
    errors: 0,
    uptimeMs: 2000,
    ...fields,
  };
}

/** A record with every optional field present. */
export function recordOf(fields: Partial<DownloadRecord> = {}): DownloadRecord {
  const record: DownloadRecord = {
    id: randomUUID(),
    clientId: randomUUID(),
    startedAtMs: 1_790_000_000_000.25,
    source: "cli",
    purpose: "request",
    clientVersion: "0.1.0",
    agent: "node/20",
    os: "linux",
    player: "hls.js",
    configVersion: 3,
    experiments: [
      { id: "e1", arm: "small window" },
      { id: "e2", arm: "b = 2" },
    ],
    url: "http://origin.example/a/segment-1.m4s",
    contentType: "video/mp4",
    range: { start: 0, end: 99_999 },
    mode: "coded-mutp",
    connections: 2,
    status: 206,
    totalBytes: 100_000,
    netBytes: 100_000,
    grossBytes: 112_716,
    directBytes: 0,
    durationMs: 855.5,
    connectMs: 80.5,
    headMs: 275,
    firstByteMs: 280,
    firstPacketMs: 279.25,
    serverFetchMs: 271,
    closeMs: 12.5,
    throughputBytesPerSec: 0,
    goodputBytesPerSec: 0,
    normalizedGoodput: 0,
    outcome: "failed",
    error: { kind: "originFailed", message: "the origin closed early\nat byte 9" },
    fallback: { kind: "proxyLost", message: "proxy-2 lost", bytes: 0 },
    sha256: "a".repeat(64),
    generationSize: 24,
    windowPackets: 240,
    symbolBytes: 1100,
    feedbackEveryPackets: 8,
    feedbackEveryMs: 20,
    engine: "native/avx2",
    generationCount: 4,
    symbolCount: 91,
    feedbackFrames: 13,
    comment: "ünïcode 🎬",
    userComment: "it stalled once",
    proxies: [
      {
        id: "p1",
        name: "proxy-1",
        bytes: 66_960,
        packets: 60,
        innovative: 50,
        duplicate: 5,
        late: 4,
        rejected: 1,
        lost: 2,
        rttMs: 0.5,
        transport: "webrtc",
        state: "used",
      },
      {
        id: "p2",
        bytes: 45_756,
        packets: 41,
        innovative: 41,
        duplicate: 0,
        late: 0,
        rejected: 0,
        lost: 0,
        rttMs: null,
        state: "failed",
        error: { kind: "proxyLost", message: "closed" },
      },
    ],
    ...fields,
  };
  const perSecond = (bytes: number): number => (record.durationMs > 0 ? (bytes * 1000) / record.durationMs : 0);
  const { netBytes, grossBytes } = record;
  return {
    ...record,
    throughputBytesPerSec: perSecond(grossBytes),
    goodputBytesPerSec: perSecond(netBytes),
    normalizedGoodput: grossBytes > 0 ? netBytes / grossBytes : 0,
  };
}

/** A record without any optional field. */
export function bareRecordOf(): DownloadRecord {
  const bare = recordOf();
  const optional = [
    "purpose",
    "clientVersion",
    "agent",
    "os",
    "player",
    "configVersion",
    "experiments",
    "contentType",
    "range",
    "totalBytes",
    "directBytes",
    "connectMs",
    "headMs",
    "firstPacketMs",
    "closeMs",
    "error",
    "generationSize",
    "windowPackets",
    "symbolBytes",
    "feedbackEveryPackets",
    "feedbackEveryMs",
    "engine",
    "generationCount",
    "symbolCount",
    "feedbackFrames",
    "comment",
    "userComment",
  ] as const;
  for (const key of optional) delete bare[key];
  return { ...bare, mode: "direct", outcome: "complete", fallback: null, sha256: null, proxies: [] };
}

export function errorOf(fields: Partial<ErrorReport> = {}): ErrorReport {
  return {
    id: randomUUID(),
    atMs: 1_790_000_000_000,
    source: "proxy",
    kind: "egressRefused",
    message: "10.0.0.7 is private",
    ...fields,
  };
}
