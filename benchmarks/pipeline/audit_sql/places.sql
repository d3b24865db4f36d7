-- The inventory of the capture, from the summaries at the end of its files; the segments, and who puts and
-- takes what where.
CREATE OR REPLACE TEMP TABLE inventory AS
SELECT gateway, boot, hub, bus, dir, contents.kind AS kind, verdict, reason,
    CASE WHEN contents.kind = 1 THEN peer END AS peer,
    sum(count) AS count, min(cap_seq) AS first, min(ts_ns) AS first_ns, sum(contents.rows) AS rows,
    sum(contents.enveloped) AS enveloped, count(*) AS summaries, max(contents.last_cap_seq) AS last,
    max(contents.last_ns) AS last_ns, list(DISTINCT payload) AS topologies
FROM captured WHERE kind = 3 GROUP BY ALL;

-- one bit for "received from", one for "put onto"
CREATE OR REPLACE TEMP TABLE segments AS
SELECT bus, 1::BIGINT << (row_number() OVER (ORDER BY bus) - 1)::INT AS bit
FROM (SELECT DISTINCT bus FROM inventory WHERE kind = 0);

CREATE OR REPLACE TEMP TABLE bridges AS
SELECT DISTINCT gateway, hub, bus, dir FROM inventory WHERE kind = 0 AND starts_with(hub, 'bridge ');

-- the wires over which bridges of other names bring frames to a target
CREATE OR REPLACE TEMP TABLE towards AS
WITH wires AS (
    SELECT DISTINCT put.bus FROM bridges put JOIN bridges take ON take.bus = put.bus AND take.hub <> put.hub
    WHERE put.dir = 1 AND take.dir = 0)
SELECT DISTINCT carrier.bus AS target, taker.bus AS wire
FROM bridges carrier JOIN bridges taker USING (gateway, hub) SEMI JOIN wires ON wires.bus = taker.bus
WHERE carrier.dir = 1 AND taker.dir = 0 AND taker.bus <> carrier.bus;

CREATE OR REPLACE TEMP TABLE ledger AS
SELECT gateway, hub, bus, peer, dir, reason, sum(count) AS count, min(first_ns) AS first_ns, max(last_ns) AS last_ns
FROM inventory WHERE kind = 1 AND verdict <> 0 GROUP BY ALL;

CREATE OR REPLACE TEMP TABLE capture AS
SELECT gateway, boot, sum(rows) AS rows, coalesce(sum(count) FILTER (kind = 2), 0) AS missed,
    greatest(0, max(last) - min(first) + 1 - sum(rows) - missed) AS holes,
    min(first_ns) AS first_ns, max(last_ns) AS last_ns
FROM inventory GROUP BY gateway, boot;
