-- The tables that the command shows, beside `findings`, `ledger` and `capture`.
CREATE OR REPLACE TEMP TABLE summary AS
SELECT kind, stage, segment, gateway, hub, matched, sum(count)::BIGINT AS count, min(ts_ns) AS first_ns,
    max(ts_ns) AS last_ns
FROM findings GROUP BY ALL ORDER BY ALL;

CREATE OR REPLACE TEMP TABLE totals AS
WITH clean AS (
    SELECT coalesce(sum(frames), 0)::BIGINT AS n, coalesce(sum(frames) FILTER (put <> 0), 0)::BIGINT AS crossed,
        coalesce(sum(frames) FILTER (is_enveloped), 0)::BIGINT AS by_envelope,
        coalesce(sum(frames) FILTER (rows >> 40 = 0), 0)::BIGINT AS by_content
    FROM typical),
entered AS (SELECT pattern, sum(n) AS n FROM homes GROUP BY pattern),
looked_at AS (
    SELECT coalesce(sum(episodes * n), 0)::BIGINT AS n FROM patterns JOIN entered USING (pattern))
SELECT looked_at.n + clean.n AS frames, looked_at.n + crossed AS crossed, clean.n AS typical, looked_at.n AS looked_at,
    by_envelope, by_content, clean.n - by_envelope - by_content AS by_both
FROM clean, looked_at;

-- For each bridge, the frames missing in the traffic beside those that its ledger dropped.
CREATE OR REPLACE TEMP TABLE agreement AS
WITH of_frame AS (
    SELECT gateway, hub, stage, max(count) AS once, sum(count) AS every
    FROM findings WHERE kind = 'lost' AND stage IN ('at the sender', 'in bridge')
    GROUP BY gateway, hub, stage, key, ts_ns),
missed AS (
    SELECT gateway, hub, 0 AS ledger, CASE WHEN stage = 'at the sender' THEN once ELSE 0 END AS at_sender,
        CASE WHEN stage = 'in bridge' THEN every ELSE 0 END AS in_bridge
    FROM of_frame
    UNION ALL
    SELECT gateway, hub, count, 0, 0 FROM ledger WHERE dir = 1)
SELECT gateway, hub, sum(ledger)::BIGINT AS ledger, sum(at_sender)::BIGINT AS at_sender,
    sum(in_bridge)::BIGINT AS in_bridge
FROM missed GROUP BY gateway, hub ORDER BY gateway, hub;
