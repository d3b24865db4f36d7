-- How far each clock is ahead of the first gateway's: half of the difference of the shortest times there and back,
-- over the gateways in between by which both add up to least.
CREATE OR REPLACE TEMP TABLE ahead AS
WITH RECURSIVE bridged AS (SELECT * FROM found WHERE home IS NOT NULL AND starts_with(hub, 'bridge ')),
shortest AS (
    SELECT put.gateway AS here, took.gateway AS there, min(took.ts_ns - put.ts_ns) AS ns
    FROM bridged put JOIN bridged took USING (key, bus)
    WHERE put.dir = 1 AND took.dir = 0 AND put.gateway <> took.gateway GROUP BY ALL),
both_ways AS (
    SELECT there.here, there.there, there.ns + back.ns AS far_ns, (there.ns - back.ns) >> 1 AS ahead_ns
    FROM shortest there JOIN shortest back ON back.here = there.there AND back.there = there.here),
paths(gateway, far_ns, ahead_ns, hops) AS (
    SELECT min(gateway), 0::BIGINT, 0::BIGINT, 0 FROM inventory WHERE kind = 0
    UNION ALL
    SELECT there, paths.far_ns + both_ways.far_ns, paths.ahead_ns + both_ways.ahead_ns, hops + 1
    FROM paths JOIN both_ways ON here = gateway WHERE hops < 3)
SELECT gateway, arg_min(ahead_ns, far_ns) AS ahead_ns FROM paths GROUP BY gateway;
