-- All rows of a frame added up: the bits of its segments, and received + put << 20 + enveloped << 40.
CREATE OR REPLACE TEMP TABLE sums AS
SELECT frame_key(type, tokens, payload, origin, seq) AS key,
    bit_or(CASE WHEN dir = 1 THEN bit << 31 ELSE bit END) AS word,
    sum(CASE WHEN dir = 1 THEN 1 << 20 ELSE 1 END + CASE WHEN origin IS NULL THEN 0 ELSE 1::BIGINT << 40 END)::BIGINT
        AS rows,
    max(flow_of(type, tokens)) AS flow
FROM captured JOIN segments USING (bus)
WHERE kind = 0 AND (dir = 0 OR starts_with(hub, 'bridge ')) AND NOT is_told(tokens)
GROUP BY key;

-- The usual sums. A segment that one frame of a home and flow reached is expected of all of them.
CREATE OR REPLACE TEMP TABLE signatures AS
SELECT word, rows, flow, count(*) AS frames, word >> 31 AS put, word & ((1::BIGINT << 31) - 1) & ~put AS home,
    (rows >> 20) % (1 << 20) AS puts, rows >> 40 = puts + rows % (1 << 20) AS is_enveloped,
    coalesce(puts // nullif(bit_count(put), 0), 0) AS times,
    coalesce(puts % nullif(bit_count(put), 0) > 0, false) AS has_more
FROM sums GROUP BY word, rows, flow;

CREATE OR REPLACE TEMP TABLE reached AS
SELECT home, flow, bit_or(put) AS put FROM signatures WHERE bit_count(home) = 1 GROUP BY home, flow;

CREATE OR REPLACE TEMP TABLE typical AS
WITH whole AS (SELECT signatures.* FROM signatures JOIN reached USING (home, flow, put)),
counts AS (
    SELECT home, flow, rows, sum(frames) AS n FROM whole
    WHERE is_enveloped OR ((times = 1 OR has_more) AND (times <= 1 OR frames >= 100))
    GROUP BY home, flow, rows),
usual AS (SELECT home, flow, arg_max(rows, n) AS rows FROM counts GROUP BY home, flow)
SELECT whole.* FROM whole JOIN usual USING (home, flow, rows);

CREATE OR REPLACE TEMP TABLE routes AS
SELECT homes.bus AS home, flow, targets.bus AS target
FROM reached JOIN segments homes ON homes.bit = reached.home JOIN segments targets ON reached.put & targets.bit <> 0;

-- The suspects, and a sample of the others by which clocks are compared (their `home` is not null).
CREATE OR REPLACE TEMP TABLE picked AS
WITH share AS (SELECT greatest(1, sum(frames) // 20000)::UBIGINT AS one_in FROM typical)
SELECT key, home FROM sums LEFT JOIN typical USING (word, rows, flow), share
WHERE home IS NULL OR hash(key) % one_in = 0;

CREATE OR REPLACE TEMP TABLE found AS
SELECT key, home, gateway, hub, bus, dir, ts_ns, origin, seq, hash(peer) AS peer, first_token(type, tokens) AS token,
    flow_of(type, tokens) AS flow, begun_of(tokens) AS begun
FROM captured JOIN picked ON picked.key = frame_key(type, tokens, payload, origin, seq)
WHERE kind = 0 AND (dir = 0 OR starts_with(hub, 'bridge ')) AND NOT is_told(tokens);
