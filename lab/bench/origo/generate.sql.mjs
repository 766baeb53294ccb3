/**
 * Realistic records, made by DuckDB itself: 5,000 clients of very different diligence, six modes, N of 1, 2, 4 and 6
 * (the paper's), chunks mostly of 1 to 2 MB (its Fig 10), lines and proxies of different rates, a few failures and
 * fallbacks, ten months. Nothing here measures Tributary: the numbers only have the shape that questions meet.
 */
export const FIRST_MS = 1_770_000_000_000;
const SPAN_MS = 300 * 86_400_000;
export const LAST_MS = FIRST_MS + SPAN_MS;

const dice = (index) => `(hash(n, ${index}) % 1000003) / 1000003.0 AS u${index}`;
const normal = (a, b) => `sqrt(-2 * ln(${a} * 0.99 + 0.0001)) * cos(6.2831853 * ${b})`;

/** One INSERT of `count` rows with `seq` from 1; the same rows for the same count. */
export const generateSql = (count) => `
INSERT INTO downloads BY NAME
WITH dice AS (SELECT n, hash(n) AS h, ${[1, 2, 3, 4, 5, 6].map(dice).join(", ")} FROM range(1, ${count} + 1) AS t(n)),
drawn AS (
  SELECT *, floor(5000 * u1 * u1 * u1)::BIGINT AS client, ['direct', 'parallel-http', 'split-http', 'uncoded-mutp',
    'coded-mutp', 'coded'][1 + (h % 6)::INTEGER] AS mode,
    [1, 2, 4, 6][1 + (hash(n, 7) % 4)::INTEGER] AS connections, greatest(1000, least(5000000,
      (1500000 * exp(0.55 * ${normal("u2", "u3")}))::BIGINT)) AS net,
    exp(0.35 * ${normal("u4", "u5")}) AS luck
  FROM dice),
paced AS (
  SELECT *, 120 + 250 * u6 AS fetch_ms, 896000.0 * CASE WHEN mode IN ('direct',
    'parallel-http') THEN 2 ELSE connections END * luck * (0.6 + (client % 97) / 120.0) AS rate,
    CASE mode WHEN 'direct' THEN 0 WHEN 'parallel-http' THEN connections - 1 WHEN 'split-http' THEN 0.01 WHEN
      'uncoded-mutp' THEN 0.12 WHEN 'coded-mutp' THEN 0.08 ELSE 0.02 END AS redundancy
  FROM drawn),
sized AS (
  SELECT *, (net * (1 + redundancy * (0.5 + u5)))::BIGINT AS gross, fetch_ms + 1000 * net / rate AS duration,
    (mode LIKE '%mutp' OR mode = 'coded') AS packeted,
    CASE WHEN mode = 'direct' THEN 0 ELSE connections END AS used, net // 1100 + 1 AS symbols,
    CASE WHEN u3 < 0.985 THEN 'complete' WHEN u3 < 0.995 THEN 'aborted' ELSE 'failed' END AS outcome
  FROM paced),
counted AS (SELECT *, CASE WHEN packeted THEN gross // 1151 + 1 ELSE 0 END AS received,
  CASE WHEN packeted THEN least(symbols, gross // 1151 + 1) ELSE 0 END AS useful FROM sized)
SELECT n AS seq, md5('id' || n)::UUID AS id, md5('client' || client)::UUID AS client_id,
  ${FIRST_MS} + n * (${SPAN_MS}.0 / ${count}) + duration AS received_at_ms,
  ${FIRST_MS} + n * (${SPAN_MS}.0 / ${count}) AS started_at_ms,
    CASE WHEN client % 20 = 0 THEN 'cli' ELSE 'extension' END AS source,
    '0.1.' || (n * 5 // ${count}) AS client_version,
  ['chrome/156', 'chrome/155', 'firefox/153', 'edge/156'][1 + client % 4] AS agent, ['windows', 'linux', 'macos',
    'android'][1 + client % 4] AS os,
  ['hls.js', 'dash.js', 'shaka'][1 + client % 3] AS player, 1 + n * 40 // ${count} AS config_version,
  chr(31) || 'e1=' || CASE WHEN h % 2 = 0 THEN 'control' ELSE 'small window' END || chr(31) AS experiments,
    CASE WHEN u4 < 0.003 THEN 'it stalled' END AS user_comment,
  'https://media' || (client % 40) || '.example/videos/' || (n % 9973) || '/segment-' || (n % 211) || '.m4s' AS url,
    'video/mp4' AS content_type,
  CASE WHEN outcome = 'failed' THEN 502 ELSE 200 END AS status, net AS total_bytes,
    CASE WHEN outcome = 'complete' THEN md5('a' || n) || md5('b' || n) END AS sha256, mode, connections,
  CASE WHEN mode LIKE 'coded%' THEN 24 END AS generation_size, CASE WHEN packeted THEN [120, 240,
    360][1 + (h % 3)::INTEGER] END AS window_packets, CASE WHEN packeted THEN 1100 END AS symbol_bytes,
  CASE WHEN packeted THEN 8 END AS feedback_every_packets, CASE WHEN packeted THEN 20 END AS feedback_every_ms,
    CASE WHEN packeted THEN 'wasm/simd128' END AS engine, outcome,
  CASE WHEN outcome <> 'complete' THEN 'originFailed' END AS error_kind,
    CASE WHEN outcome <> 'complete' THEN 'the origin closed early' END AS error_message,
  CASE WHEN u6 < 0.01 THEN 'proxyLost' END AS fallback_kind, CASE WHEN u6 < 0.01 THEN 'closed' END AS fallback_message,
    CASE WHEN u6 < 0.01 THEN net // 3 END AS fallback_bytes, duration AS duration_ms, 40 + 100 * u2 AS connect_ms,
  fetch_ms + 5 AS head_ms, fetch_ms + 9 AS first_byte_ms,
    CASE WHEN packeted THEN fetch_ms + 8 END AS first_packet_ms, fetch_ms AS server_fetch_ms,
    10 + 40 * u2 AS close_ms,
  net AS net_bytes, gross AS gross_bytes, CASE WHEN mode = 'direct' THEN gross ELSE 0 END AS direct_bytes,
    CASE WHEN mode LIKE 'coded%' THEN symbols // 24 + 1 END AS generation_count,
  CASE WHEN packeted THEN symbols END AS symbol_count,
    CASE WHEN packeted THEN received // 8 + 1 END AS feedback_frames, used AS proxies_used,
  CASE WHEN u6 < 0.01 AND used > 0 THEN 1 ELSE 0 END AS proxies_failed, received AS packets, useful AS innovative,
    received - useful AS duplicate, 0 AS late, 0 AS rejected,
  (received * 0.01 * u4)::BIGINT AS lost, CASE WHEN used > 0 THEN 8 + 60 * u5 END AS rtt_ms_min,
    CASE WHEN packeted THEN 'webrtc' WHEN used > 0 THEN 'http' END AS transport,
  to_json(list_transform(range(used), lambda p: {id: left(md5('p' || ((client + p) % 18)), 16),
    name: 'proxy-' || ((client + p) % 18), bytes: gross // used, packets: received // used,
    innovative: received // used, duplicate: 0, late: 0, rejected: 0, lost: 0, rttMs: 8 + 60 * u5,
      state: 'used'}))::VARCHAR AS proxies
FROM counted ORDER BY n`;
