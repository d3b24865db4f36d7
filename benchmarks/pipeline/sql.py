"""The audit as a program for DuckDB: SQL (`audit_sql/*.sql`) with a little Python in between.

It finds what `pipeline.analysis.audit` finds. It refuses captures with what those of the benchmark lack:
holes in what recorders wrote, events, buses that trunks join, two bridges that carry the same frames side by
side (then pauses of segments count), more than 31 segments or 62 filters.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bus import events, logs

if TYPE_CHECKING:
    import duckdb

_SQL: Final = Path(__file__).parent / "audit_sql"
_EVERY: Final = 1 << 62  # the bit of the pattern that all frames start with
_VARIABLES: Final = {
    "window_ns": 2_000_000_000, "gap_ns": 100_000_000, "bin_ns": 10_000_000, "slack_ns": 10_000_000,
}  # fmt: skip
_PARALLEL: Final = """
    SELECT count(*) > 0 FROM ways one JOIN ways other USING (begun) WHERE one.bridge < other.bridge
    AND (one.source, one.target) IN ((other.source, other.target), (other.target, other.source))"""
Pattern = tuple[int, ...]
Topology = Mapping[str, Mapping[str, Any]]


def connect(directory: Path, threads: int, memory: str, temporary: Path) -> "duckdb.DuckDBPyConnection":
    """Open a database in memory, with the view `captured` of a capture's files."""
    import duckdb

    db = duckdb.connect(
        config={
            "threads": threads, "memory_limit": memory, "temp_directory": str(temporary),
            "preserve_insertion_order": False,
        }
    )  # fmt: skip
    files = f"{escape(str(directory))}/capture/*/*/*.parquet".replace("'", "''")  # a path is no pattern
    options = "hive_partitioning = true, hive_types_autocast = false"
    db.execute(f"CREATE VIEW captured AS SELECT * FROM read_parquet('{files}', {options})")
    for name, value in _VARIABLES.items():
        db.execute(f"SET VARIABLE {name} = {value}::BIGINT")
    return db


def audit(db: "duckdb.DuckDBPyConnection") -> None:
    """Audit the capture, into the tables `totals`, `summary`, `findings`, `ledger` and `capture`.

    Raises `ValueError` for a capture with something that this program does not know.
    """
    _run(db, "places")
    topologies = list(_topologies(db))
    _check(db, topologies)
    _define(db, topologies)
    for step in ("sums", "clocks", "episodes", "explain", "silent"):
        _run(db, step)
    if _one(db, _PARALLEL):
        raise ValueError("the audit in SQL does not know captures with two bridges side by side")
    _run(db, "tables")


def _run(db: "duckdb.DuckDBPyConnection", step: str) -> None:
    db.execute((_SQL / f"{step}.sql").read_text())


def _topologies(db: "duckdb.DuckDBPyConnection") -> Iterator[Topology]:
    """Yield the topologies that files were recorded under."""
    for (texts,) in db.execute("SELECT topologies FROM inventory WHERE kind = 5").fetchall():
        yield from map(json.loads, texts)


def _check(db: "duckdb.DuckDBPyConnection", topologies: Sequence[Topology]) -> None:
    refused = {
        "rows without summaries": "SELECT sum(rows + summaries) <> any_value(every) "
        "FROM inventory, (SELECT count(*) AS every FROM captured)",
        "holes": "SELECT sum(missed + holes) > 0 FROM capture",
        "events": "SELECT count(*) > 0 FROM inventory WHERE kind = 6",
        "more than 31 segments": "SELECT count(*) > 31 FROM segments",
    }
    found = [what for what, sql in refused.items() if _one(db, sql)]
    found += ["trunks"] * any(hub.get("trunks") for hubs in topologies for hub in hubs.values())
    found += ["more than 62 filters"] * (len(_patterns(topologies)) > 62)
    if found:
        raise ValueError(f"the audit in SQL does not know captures with {', '.join(found)}")


def _one(db: "duckdb.DuckDBPyConnection", sql: str) -> Any:
    row = db.execute(sql).fetchone()
    return row and row[0]


def _define(db: "duckdb.DuckDBPyConnection", topologies: Sequence[Topology]) -> None:
    """Define what depends on the capture: the key of frames, their flows by the filters, and the sides."""
    known = _patterns(topologies)
    whole = _one(db, "SELECT bool_and(rows = enveloped) FROM inventory WHERE kind = 0")
    key = "(origin << 32) | seq" if whole else "hash(type, tokens, payload)"
    told = " OR ".join(_begins(pattern) for pattern in (events.PATTERN, logs.PATTERN))
    begun = [f"CASE WHEN {_begins(one)} THEN {1 << n} ELSE 0 END" for n, one in enumerate(known)]
    first = "CASE WHEN type IS NULL THEN -2 ELSE coalesce(tokens[1]::BIGINT, -1) END"
    macros = {
        "frame_key(type, tokens, payload, origin, seq)": key,
        "is_told(tokens)": told,
        "first_token(type, tokens)": first,
        "flow_of(type, tokens)": _flow(known, first),
        "begun_of(tokens)": f"({' + '.join(begun) or '0'})::BIGINT",
    }
    for head, body in macros.items():
        db.execute(f"CREATE OR REPLACE TEMP MACRO {head} AS {body}")
    _write_sides(db, topologies, known)


def _begins(pattern: Sequence[int]) -> str:
    same = " AND ".join(f"tokens[{n}] = {token}" for n, token in enumerate(pattern, 1))
    return f"coalesce({same}, false)"


def _flow(known: Sequence[Pattern], first: str) -> str:
    """Return the number of a frame's flow: its first token where no filter looks deeper at such a frame."""
    heads = [
        f"WHEN {_begins(one)} THEN (hash(tokens[1:{len(one)}]) >> 1)::BIGINT"
        for one in sorted(known, key=len, reverse=True)
        if len(one) > 1
    ]
    return f"CASE {' '.join(heads)} ELSE {first} END" if heads else first


def _patterns(topologies: Sequence[Topology]) -> list[Pattern]:
    """Return the patterns of all filters, sorted; a pattern's number is its place here."""
    found = set[Pattern]()
    for hub in (hub for hubs in topologies for hub in hubs.values()):
        found.add(tuple(hub.get("pattern", ())))
        for side in hub.get("sides", ()):
            found.update(tuple(one) for name, some in side.items() if name != "segment" for one in some)
    return sorted(found - {()})


def _write_sides(
    db: "duckdb.DuckDBPyConnection", topologies: Sequence[Topology], known: Sequence[Pattern]
) -> None:
    """Write the sides of bridges in the topologies: what they let in and out, by the bits of patterns."""
    columns = "hub INT, bridge TEXT, segment TEXT, pattern BIGINT, allow_in BIGINT, deny_in BIGINT, "
    db.execute(f"CREATE OR REPLACE TEMP TABLE sides ({columns} allow_out BIGINT, deny_out BIGINT)")
    named = (pair for hubs in topologies for pair in hubs.items() if pair[0].startswith("bridge "))
    for number, (name, hub) in enumerate(named):
        for side in hub.get("sides", ()):
            lists = [
                [*side.get(word, ()), *side.get(f"{word}_{way}", ())]
                for way in ("in", "out")
                for word in ("allow", "deny")
            ]
            bits = [_bits(some, known) for some in lists]
            allow_in, deny_in, allow_out, deny_out = bits
            row = [number, name, side["segment"], _bits([hub.get("pattern", ())], known)]
            row += [allow_in or None, deny_in, allow_out or None, deny_out]
            db.execute("INSERT INTO sides VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)


def _bits(patterns: Sequence[Sequence[int]], known: Sequence[Pattern]) -> int:
    """Return the bits of patterns, each once."""
    numbers = {known.index(tuple(one)) for one in patterns if one}
    return sum(1 << n for n in numbers) | _EVERY * any(not one for one in patterns)
