-- What went wrong with the frames of each fault pattern, by how often each hub saw them.
CREATE OR REPLACE TEMP TABLE patterns AS
SELECT row_number() OVER () AS pattern, *
FROM (
    SELECT fault_pattern, first, flow, begun, count(*) AS episodes, min({'key': key, 'episode': episode}) AS one
    FROM episodes GROUP BY fault_pattern, first, flow, begun);

CREATE OR REPLACE TEMP TABLE seen AS
SELECT pattern, gateway, hub, bus, dir, n
FROM patterns JOIN counts ON counts.key = patterns.one.key AND counts.episode = patterns.one.episode;

-- Frames that `entered` a segment are those heard that no bridge had put there; `entered_most` are they if hubs do
-- not hear what they put themselves.
CREATE OR REPLACE TEMP TABLE by_segment AS
WITH hubs AS (
    SELECT pattern, bus, hub, coalesce(sum(n) FILTER (dir = 0), 0) AS heard, coalesce(sum(n) FILTER (dir = 1), 0) AS put,
        count(*) FILTER (dir = 0) > 0 AS is_heard, sum(put) OVER (PARTITION BY pattern, bus) AS delivered
    FROM seen GROUP BY pattern, bus, hub)
SELECT pattern, bus, any_value(delivered)::BIGINT AS delivered, max(heard)::BIGINT AS heard,
    greatest(0, max(heard) - any_value(delivered))::BIGINT AS entered,
    greatest(entered, max(heard - (delivered - put)) FILTER (is_heard))::BIGINT AS entered_most
FROM hubs GROUP BY pattern, bus;

-- Where they came from. If all that was heard was also put there (a self-echo), from the segment that heard it first.
CREATE OR REPLACE TEMP TABLE homes AS
WITH base AS (
    SELECT pattern, bus, entered AS n FROM by_segment WHERE entered > 0
    UNION ALL
    SELECT pattern, first, 1 FROM patterns
    WHERE first <> '' AND pattern NOT IN (SELECT pattern FROM by_segment WHERE entered > 0)),
-- a guess is the base with another number for one segment; '' is the base itself
doubted AS (
    SELECT pattern, by_segment.bus AS guess, entered_most AS n
    FROM by_segment JOIN patterns USING (pattern)
    WHERE entered_most > entered AND (by_segment.bus, flow) IN (SELECT (home, flow) FROM routes)),
guesses AS (
    SELECT pattern, '' AS guess, bus, n FROM base
    UNION ALL
    SELECT doubted.pattern, guess, base.bus, base.n FROM doubted JOIN base USING (pattern) WHERE base.bus <> guess
    UNION ALL
    SELECT pattern, guess, guess, n FROM doubted),
due AS (
    SELECT pattern, guess, target AS bus, -sum(n) AS n
    FROM guesses JOIN patterns USING (pattern) JOIN routes ON routes.home = guesses.bus AND routes.flow = patterns.flow
    GROUP BY ALL
    UNION ALL
    SELECT pattern, guess, by_segment.bus, delivered
    FROM by_segment JOIN (SELECT DISTINCT pattern, guess FROM guesses) USING (pattern)),
wrong AS (
    SELECT pattern, guess, sum(abs(n)) AS wrong
    FROM (SELECT pattern, guess, bus, sum(n) AS n FROM due GROUP BY ALL) GROUP BY pattern, guess),
chosen AS (
    SELECT other.pattern, other.guess FROM wrong other JOIN wrong base ON base.pattern = other.pattern AND base.guess = ''
    WHERE other.guess <> '' AND other.wrong <= base.wrong)
SELECT pattern, bus, n FROM base ANTI JOIN chosen ON chosen.pattern = base.pattern AND chosen.guess = base.bus
UNION ALL
SELECT pattern, guess, n FROM doubted SEMI JOIN chosen USING (pattern, guess);

CREATE OR REPLACE TEMP TABLE balance AS
WITH due AS (
    SELECT pattern, target AS bus, -sum(n) AS n
    FROM homes JOIN patterns USING (pattern) JOIN routes ON routes.home = homes.bus AND routes.flow = patterns.flow
    GROUP BY ALL
    UNION ALL
    SELECT pattern, bus, delivered FROM by_segment)
SELECT pattern, bus AS target, sum(n)::BIGINT AS difference FROM due GROUP BY ALL HAVING sum(n) <> 0;

-- What each hub held of the frames, put onto the target, and passed onto the wires that lead there.
CREATE OR REPLACE TEMP TABLE evidence AS
SELECT pattern, target, gateway, hub,
    coalesce(sum(seen.n) FILTER (dir = 0 AND seen.bus <> target), 0) AS held,
    coalesce(sum(seen.n) FILTER (dir = 0 AND seen.bus <> target AND delivered > 0), 0) AS heard,
    coalesce(sum(seen.n) FILTER (dir = 1 AND seen.bus = target), 0) AS put,
    coalesce(sum(seen.n) FILTER (dir = 1 AND (target, seen.bus) IN (SELECT (target, wire) FROM towards)), 0) AS passed,
    greatest(0, held - put) AS short, starts_with(hub, 'bridge ') AS is_bridge,
    (gateway, hub, target) IN (SELECT (gateway, hub, bus) FROM bridges WHERE dir = 1) AS is_carrier
FROM balance JOIN seen USING (pattern) JOIN by_segment USING (pattern, bus)
GROUP BY pattern, target, gateway, hub;

-- Frames put onto a wire that nobody heard, and that others heard than the bridges of the target.
CREATE OR REPLACE TEMP TABLE on_wires AS
WITH carriers AS (SELECT DISTINCT bus AS target, hub FROM bridges WHERE dir = 1),
wires AS (
    SELECT pattern, target, delivered, least(delivered, by_segment.heard) AS heard, (
            SELECT coalesce(sum(n), 0) FROM seen JOIN carriers ON carriers.hub = seen.hub
            WHERE seen.pattern = balance.pattern AND seen.bus = wire AND dir = 0 AND carriers.target = balance.target
        ) AS taken
    FROM balance JOIN towards USING (target) JOIN by_segment USING (pattern)
    WHERE by_segment.bus = wire AND difference < 0)
SELECT pattern, target, sum(delivered - heard) AS at_sender, sum(greatest(0, heard - taken)) AS on_way
FROM wires GROUP BY pattern, target;

CREATE OR REPLACE TEMP TABLE faults AS
WITH shares AS (
    SELECT pattern, target, -difference AS lost, any_value(at_sender) AS sent, any_value(on_way) AS on_way,
        sum(short) FILTER (is_carrier) AS in_bridge,
        max({'gateway': gateway, 'hub': hub}) FILTER (is_carrier AND short > 0) AS holder,
        max({'gateway': gateway, 'hub': hub}) FILTER (passed > 0) AS sender,
        max({'gateway': gateway, 'hub': hub}) FILTER (evidence.put > 0) AS putter,
        coalesce(max(held) FILTER (NOT is_bridge), 0)
            - coalesce(sum(held - evidence.heard) FILTER (is_bridge), 0) AS nobody
    FROM balance LEFT JOIN evidence USING (pattern, target) LEFT JOIN on_wires USING (pattern, target)
    GROUP BY pattern, target, difference),
-- a loss is shared out in this order; the rest was lost upstream, and is told there
parts AS (
    SELECT *, least(lost, greatest(0, coalesce(in_bridge, 0))) AS n1,
        least(lost - n1, greatest(0, coalesce(sent, 0))) AS n2,
        least(lost - n1 - n2, greatest(0, coalesce(on_way, 0))) AS n3,
        least(lost - n1 - n2 - n3, greatest(0, nobody)) AS n4,
        lost - n1 - n2 - n3 - n4 AS n5
    FROM shares WHERE lost > 0),
told AS (
    SELECT pattern, target, 'lost' AS kind, unnest([
        {'stage': 'in bridge', 'by': holder, 'n': n1}, {'stage': 'at the sender', 'by': sender, 'n': n2},
        {'stage': 'on the way', 'by': NULL, 'n': n3}, {'stage': 'no bridge', 'by': NULL, 'n': n4},
        {'stage': 'upstream', 'by': NULL, 'n': n5}]) AS part
    FROM parts
    UNION ALL
    SELECT pattern, target,
        CASE WHEN (pattern, target) IN (SELECT (pattern, bus) FROM homes) THEN 'echo' ELSE 'duplicate' END,
        {'stage': 'in bridge', 'by': putter, 'n': -lost}
    FROM shares WHERE lost < 0)
SELECT pattern, target AS segment, kind, part.stage, part.by.gateway AS gateway, part.by.hub AS hub, part.n::BIGINT AS n
FROM told WHERE part.n > 0;

CREATE OR REPLACE TEMP TABLE findings AS
SELECT key, episode, ts_ns, origin, seq, token, matched, first, flow, kind, stage, segment, gateway, hub,
    n AS count
FROM episodes JOIN patterns USING (fault_pattern, first, flow, begun) JOIN faults USING (pattern);
