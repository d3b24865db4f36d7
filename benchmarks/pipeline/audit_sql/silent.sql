-- The bridges without which lost frames cannot have reached their segments. `sides` is of the topologies: lists of
-- patterns as bits, bit 62 for all frames. A bridge in none of them has the ways that its traffic shows.
CREATE OR REPLACE TEMP TABLE lost AS
SELECT DISTINCT first, flow, begun, segment FROM faults JOIN patterns USING (pattern) WHERE kind = 'lost';

CREATE OR REPLACE TEMP TABLE ways AS
WITH flows AS (SELECT DISTINCT begun, begun | (1::BIGINT << 62) AS bits FROM lost),
told AS (
    SELECT DISTINCT begun, one.bridge, one.segment AS source, other.segment AS target
    FROM sides one JOIN sides other ON other.hub = one.hub AND other.segment <> one.segment, flows
    WHERE one.pattern & bits <> 0 AND one.deny_in & bits = 0 AND coalesce(one.allow_in & bits <> 0, true)
        AND other.deny_out & bits = 0 AND coalesce(other.allow_out & bits <> 0, true))
SELECT * FROM told
UNION
SELECT begun, take.hub, take.bus, put.bus
FROM bridges take JOIN bridges put ON put.hub = take.hub AND put.bus <> take.bus, flows
WHERE take.dir = 0 AND put.dir = 1 AND take.hub NOT IN (SELECT bridge FROM sides);

CREATE OR REPLACE TEMP TABLE need AS
WITH RECURSIVE without AS (SELECT DISTINCT bridge FROM ways UNION ALL SELECT ''),
reach(begun, home, without, segment) AS (
    SELECT DISTINCT begun, first, bridge, first FROM lost, without
    UNION
    SELECT reach.begun, home, without, target
    FROM reach JOIN ways ON ways.begun = reach.begun AND ways.source = segment AND ways.bridge <> without)
SELECT DISTINCT lost.first, lost.flow, lost.segment, bridge
FROM lost JOIN reach whole ON whole.begun = lost.begun AND home = first AND whole.segment = lost.segment, without
WHERE whole.without = '' AND bridge <> ''
    AND (lost.begun, first, bridge, lost.segment) NOT IN (SELECT (begun, home, without, segment) FROM reach);

-- Bridges that passed nothing for longer than a pause; `last` is the gateway that passed something last.
CREATE OR REPLACE TEMP TABLE silences AS
WITH of_gateways AS (
    SELECT hub, gateway, (ts_ns - coalesce(ahead_ns, 0)) // getvariable('bin_ns') AS bin,
        min(ts_ns - coalesce(ahead_ns, 0)) AS from_ns, max(ts_ns - coalesce(ahead_ns, 0)) AS to_ns
    FROM captured LEFT JOIN ahead USING (gateway)
    WHERE kind = 0 AND hub IN (SELECT bridge FROM need) GROUP BY ALL),
in_bins AS (
    SELECT hub, bin, min(from_ns) AS begin_ns, max(to_ns) AS from_ns, arg_max(gateway, to_ns) AS last
    FROM of_gateways GROUP BY hub, bin),
ended AS (SELECT max(last_ns - coalesce(ahead_ns, 0)) AS end_ns FROM inventory LEFT JOIN ahead USING (gateway))
SELECT hub, from_ns, coalesce(lead(begin_ns) OVER (PARTITION BY hub ORDER BY bin), end_ns) AS to_ns, last
FROM in_bins, ended QUALIFY to_ns - from_ns > getvariable('gap_ns');

-- Losses of frames that had to pass a bridge in its silence, if at least three were lost in it.
UPDATE findings SET stage = 'no bridge', gateway = guilty.by.last, hub = guilty.by.hub
FROM (
    WITH losses AS (
        SELECT key, episode, findings.segment, bridge FROM findings JOIN need USING (first, flow, segment)
        WHERE kind = 'lost'),
    heard AS (SELECT * FROM suspect_rows SEMI JOIN losses USING (key, episode) WHERE dir = 0),
    entry AS (SELECT key, episode, arg_min({'hub': hub, 'bus': bus}, at_ns) AS one FROM heard GROUP BY ALL),
    entered AS (
        SELECT key, episode, at_ns FROM heard JOIN entry USING (key, episode)
        WHERE hub = one.hub AND bus = one.bus),
    inside AS (
        SELECT key, episode, segment, silences.*, at_ns
        FROM losses JOIN entered USING (key, episode) JOIN silences ON silences.hub = bridge
            AND at_ns BETWEEN from_ns - getvariable('slack_ns') AND to_ns + getvariable('slack_ns')),
    many AS (SELECT hub, from_ns FROM inside GROUP BY ALL HAVING count(DISTINCT at_ns) >= 3)
    SELECT key, episode, segment, min({'from_ns': from_ns, 'hub': hub, 'last': last}) AS by
    FROM inside SEMI JOIN many USING (hub, from_ns) GROUP BY ALL) AS guilty
WHERE findings.key = guilty.key AND findings.episode = guilty.episode AND findings.segment = guilty.segment
    AND findings.kind = 'lost';
