-- The rows of suspects in episodes: a new one begins after silence for the window. Rows of one envelope are in one
-- episode, however late; so is what their gateway does with the frame without an envelope, within the window.
CREATE OR REPLACE TEMP TABLE suspect_rows AS
WITH timed AS NOT MATERIALIZED (
    SELECT * EXCLUDE (home, ahead_ns), ts_ns - coalesce(ahead_ns, 0) AS at_ns
    FROM found LEFT JOIN ahead USING (gateway) WHERE home IS NULL),
envelopes AS MATERIALIZED (
    SELECT key, origin, seq, min(at_ns) AS first_at FROM timed WHERE origin IS NOT NULL GROUP BY ALL),
late AS (
    SELECT *, CASE WHEN origin IS NOT NULL THEN {'at': at_ns, 'late': at_ns - first_at} END AS own
    FROM timed LEFT JOIN envelopes USING (key, origin, seq)),
known AS (
    SELECT *, last_value(own IGNORE NULLS) OVER (PARTITION BY key, gateway ORDER BY at_ns) AS known
    FROM late SEMI JOIN envelopes USING (key)
    UNION ALL
    SELECT *, NULL FROM late ANTI JOIN envelopes USING (key)),
joined AS MATERIALIZED (
    SELECT * EXCLUDE (first_at, own, known),
        at_ns - CASE WHEN at_ns - known.at <= getvariable('window_ns') THEN known.late ELSE 0 END AS joined_ns,
        joined_ns // getvariable('window_ns') AS bin
    FROM known),
-- no silence in a bin is as long as the window
bins AS (
    SELECT key, bin, min(joined_ns) AS first, max(joined_ns) AS last FROM joined GROUP BY key, bin),
fresh AS (
    SELECT *, first - lag(last) OVER (PARTITION BY key ORDER BY bin) > getvariable('window_ns') AS fresh FROM bins),
numbered AS (
    SELECT key, bin, coalesce(sum(fresh::INT) OVER (PARTITION BY key ORDER BY bin), 0)::BIGINT AS episode FROM fresh)
SELECT * EXCLUDE (joined_ns, bin) FROM joined JOIN numbered USING (key, bin);

-- How often each hub saw the frame. A segment with several peers gets it once for each: the busiest counts.
CREATE OR REPLACE TEMP TABLE counts AS
WITH by_peer AS (
    SELECT key, episode, gateway, hub, bus, dir, peer, count(*) AS n, count(origin) AS enveloped,
        min(ts_ns) AS first_ns, min(at_ns) AS first_at,
        max(origin) AS origin, max(seq) AS seq, max(token) AS token, max(flow) AS flow, max(begun) AS begun
    FROM suspect_rows GROUP BY ALL)
SELECT key, episode, gateway, hub, bus, dir, CASE WHEN dir = 1 THEN max(n) ELSE sum(n) END::BIGINT AS n,
    sum(n) AS every, sum(enveloped) AS enveloped, min(first_ns) AS first_ns,
    min(first_at) AS first_at, max(origin) AS origin, max(seq) AS seq,
    max(token) AS token, max(flow) AS flow, max(begun) AS begun
FROM by_peer GROUP BY key, episode, gateway, hub, bus, dir;

-- Equal counts have equal fault patterns. The hash of several values is linear in the last of them, so it is hashed
-- again.
CREATE OR REPLACE TEMP TABLE episodes AS
WITH ordered AS (
    SELECT *, CASE WHEN dir = 0 THEN
        first_at + CASE WHEN bus IN (SELECT home FROM routes) THEN 0 ELSE 1::BIGINT << 60 END END AS heard_at
    FROM counts)
SELECT key, episode, bit_xor(hash(hash(gateway, hub, bus, dir, n))) AS fault_pattern,
    coalesce(arg_min(bus, heard_at), '') AS first, max(flow) AS flow, max(begun) AS begun,
    min(first_ns) FILTER (dir = 0) AS ts_ns, max(origin) AS origin, max(seq) AS seq,
    max(token) AS token,
    CASE WHEN sum(enveloped) = 0 THEN 'content' WHEN sum(enveloped) = sum(every) THEN 'envelope'
        ELSE 'content, envelope on trunks' END AS matched
FROM ordered GROUP BY key, episode;
