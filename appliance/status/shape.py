"""The shape of a status document: the keys that its readers rely on, with their descriptions. Pure.

Processes of other versions answer too, and any user's process may answer root. The published JSON Schema and
the table in docs/status.md are made from the shape.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

Record = dict[str, Any]
"""A part of a status document."""
Status = Record
"""A whole status document."""
VERSION: Final = 2
"""Version of the document. It changes when a key goes or changes its meaning, not when one is added."""
MOST: Final = 1 << 62  # also as nanoseconds since 1970: the year 2116
_NUMBER, _REAL, _TEXT, _YES = int, float, str, bool
_COUNTS = {_TEXT: _NUMBER}
_RATES = {
    "received_per_s": _REAL, "sent_per_s": _REAL, "received_bytes_per_s": _REAL, "sent_bytes_per_s": _REAL,
}  # fmt: skip


class Maybe(NamedTuple):
    """A shape of a key that may be absent."""

    shape: Any


class Key(NamedTuple):
    """A key at the top of a document: the shape of its value, and its description."""

    shape: Any
    doc: str


_ACCOUNT = {
    "received": _NUMBER, "received_bytes": Maybe(_NUMBER), "offered": Maybe(_NUMBER), "sent": _NUMBER,
    "sent_bytes": Maybe(_NUMBER), "queued": _NUMBER, "queued_bytes": Maybe(_NUMBER),
    "dropped": _COUNTS, "rejected": _COUNTS, "noise_bytes": Maybe(_NUMBER), "balance": _NUMBER,
}  # fmt: skip
_KEPT = {
    "for": _TEXT, "directory": _TEXT, "state": _TEXT, "messages": _NUMBER, "bytes": _NUMBER,
    "oldest_ms": Maybe(_NUMBER), "to_go_s": Maybe(_REAL),
}  # fmt: skip
_ROW = {
    "name": _TEXT, "live": _NUMBER, "gone": Maybe(_NUMBER), "rates": Maybe(_RATES), "state": Maybe(_TEXT),
    "condition": Maybe(_TEXT), "fault": Maybe(_TEXT), "losses": Maybe(_NUMBER), "edges": Maybe([_TEXT]),
    "down_ms": Maybe(_NUMBER), "kept": Maybe([_KEPT]), "label": Maybe(_TEXT), "far": Maybe(_TEXT),
} | _ACCOUNT  # fmt: skip
_PIPE = {"name": _TEXT} | _ACCOUNT
_LINK = {
    "name": _TEXT, "state": Maybe(_TEXT), "condition": Maybe(_TEXT), "fault": Maybe(_TEXT),
    "losses": Maybe(_NUMBER),
}  # fmt: skip
_CLAIM = {
    "name": _TEXT, "part": Maybe(_TEXT), "order": _NUMBER, "ready": _YES, "holding": _YES,
    "silent_ms": _NUMBER, "host": Maybe(_TEXT),
}  # fmt: skip
_LEASE = {
    "bridge": _TEXT, "pattern": Maybe([_NUMBER]), "holder": _TEXT, "epoch": _NUMBER,
    "expires_ms": Maybe(_NUMBER), "candidates": [_CLAIM],
}  # fmt: skip
_REGISTRATION = {"role": _TEXT, "pattern": _TEXT, "address": _TEXT}
_SERVICE = {"name": _TEXT, "host": _TEXT, "function": _TEXT, "interfaces": [_TEXT], "suspect": _YES}
_VALUE = {
    "on": _TEXT, "pattern": _TEXT, "data": _TEXT, "age_ms": _NUMBER, "unit": Maybe(_TEXT),
    "number": Maybe(_REAL), "low": Maybe(_REAL), "high": Maybe(_REAL),
}  # fmt: skip
_BROKER = {
    "name": _TEXT, "kind": Maybe(_TEXT), "part": Maybe(_TEXT), "urls": [_TEXT], "counts": _COUNTS,
    "rejected": _COUNTS, "leases": [_LEASE],
    "registrations": Maybe([_REGISTRATION]), "services": Maybe([_SERVICE]),
}  # fmt: skip
_ROLE = {
    "bridge": _TEXT, "part": Maybe(_TEXT), "lease": Maybe(_TEXT), "pattern": Maybe([_NUMBER]),
    "name": Maybe(_TEXT), "role": _TEXT,
    "ready": _YES, "settling": Maybe(_YES), "cause": _TEXT, "epoch": _NUMBER, "holder": _TEXT,
    "takeovers": _NUMBER, "brokers": Maybe([_TEXT]), "lease_ms": Maybe(_NUMBER), "late_ms": Maybe(_NUMBER),
    "takeovers_without_fault": Maybe(_NUMBER), "leases_lost_late": Maybe(_NUMBER), "window": Maybe(_COUNTS),
    "unsaid": Maybe(_COUNTS),
}  # fmt: skip
_EVENT = {"time_ns": _NUMBER, "kind": _TEXT, "source": _TEXT, "cause": _TEXT, "counts": _COUNTS}
_TAP = {
    "name": _TEXT, "part": Maybe(_TEXT), "state": _TEXT, "fault": _TEXT, "losses": _NUMBER,
    "captured": _NUMBER, "lost": _NUMBER, "losing": Maybe(_YES),
    "ring_bytes": _NUMBER, "waiting_bytes": _NUMBER, "written": _NUMBER, "files": _NUMBER, "deleted": _NUMBER,
}  # fmt: skip
_EDGE_STATE = {
    "id": _TEXT, "hub": _TEXT, "row": _TEXT, "state": _TEXT, "condition": _TEXT, "fault": _TEXT,
    "down_ms": Maybe(_NUMBER),
}  # fmt: skip
_BOX = {"gateway": _TEXT, "address": _TEXT, "x": _REAL, "y": _REAL, "width": _REAL, "height": _REAL}
_NODE = {
    "id": _TEXT, "kind": _TEXT, "name": _TEXT, "gateway": _TEXT, "detail": _TEXT, "x": _REAL, "y": _REAL,
}  # fmt: skip
_EDGE = {
    "id": _TEXT,
    "one": _TEXT,
    "other": _TEXT,
    "trunk": _YES,
    "standby": _YES,
    "path": [_REAL],
    "durable": Maybe(_YES),
    "label": Maybe([_REAL]),
}
_DRAWING = {"width": _REAL, "height": _REAL, "boxes": [_BOX], "nodes": [_NODE], "edges": [_EDGE]}
_TRANSIT = {
    "hub": _TEXT, "one": _TEXT, "other": _TEXT, "bounds_s": [_REAL], "counts": [_NUMBER], "sum_s": _REAL,
}  # fmt: skip

_ALARM = {
    "alarm": _TEXT, "severity": _TEXT, "text": _TEXT, "judges": [_TEXT], "leads": _YES, "number": _NUMBER,
    "stage": _TEXT, "of": _TEXT, "since_ns": _NUMBER, "cause": _TEXT, "by": _TEXT, "told": [_TEXT],
    "failed": Maybe([_TEXT]),
}  # fmt: skip
_REASON = {"word": _TEXT, "source": _TEXT, "text": _TEXT}
_PLANT_ROLE = {
    "bridge": _TEXT, "role": _TEXT, "ready": _YES, "epoch": _NUMBER, "holder": _TEXT, "lease": Maybe(_TEXT),
}  # fmt: skip
_GATEWAY = {
    "name": _TEXT, "address": _TEXT, "here": _YES, "state": _TEXT, "word": _TEXT, "line": _TEXT,
    "product": Maybe(_TEXT), "file": Maybe(_TEXT), "other_file": Maybe(_YES), "started_ns": Maybe(_NUMBER),
    "time_ns": Maybe(_NUMBER), "ahead_ms": Maybe(_NUMBER), "page": Maybe(_TEXT),
    "roles": Maybe([_PLANT_ROLE]),
}  # fmt: skip
_PLANT = {
    "word": _TEXT,
    "line": _TEXT,
    "reasons": [_REASON],
    "more": _NUMBER,
    "gateways": [_GATEWAY],
    "more_gateways": _NUMBER,
}
_PART = {
    "id": _TEXT, "kind": _TEXT, "name": _TEXT, "state": _TEXT, "condition": Maybe(_TEXT), "fault": _TEXT,
    "down_ms": Maybe(_NUMBER),
}  # fmt: skip

KEYS: Final[Mapping[str, Key]] = {
    "version": Key(_NUMBER, f"{VERSION}"),
    "time_ns": Key(_NUMBER, "now, since 1970"),
    "started_ns": Key(_NUMBER, "start of the process, since 1970"),
    "pid": Key(_NUMBER, "the process"),
    "product": Key(_TEXT, "version of buscoupler"),
    "program": Key(_TEXT, "its command: `run`, `device`, `broker`, `syndicate` or `catalog`"),
    "topology": Key(_TEXT, "name; for a command without a topology, its first address"),
    "gateway": Key(_TEXT, 'name; "" for a command without a topology'),
    "file": Key(Maybe(_TEXT), 'the SHA-256 of the topology file that it runs; "" without one'),
    "gateways": Key({_TEXT: _TEXT}, "the address of each gateway of the topology, by name"),
    "silent": Key(
        {_TEXT: _TEXT}, "why a gateway of the topology counts as silent, by its name, as seen from here"
    ),
    "page": Key(_TEXT, 'the address of the status page; "" if there is none'),
    "certificates": Key(
        Maybe({_TEXT: _NUMBER}), "when each file of certificates in use ends, in ns since 1970, at most 2116"
    ),
    "health": Key(
        Maybe({"word": _TEXT, "line": _TEXT, "reasons": [_REASON], "more": _NUMBER}),
        "whether the gateway is well, of `run` only: `word` (`ok`, `degraded`, `trouble`), the `reasons`, "
        "the worst first, how many `more` there are, and the first in a `line` ([health](#health))",
    ),
    "plant": Key(
        Maybe(_PLANT),
        "what this gateway knows of all gateways, if there are others ([plant](#the-plant)): a verdict like "
        "`health`, and of each its `state` (`answers`, `claims`, `silent`, `unknown`) and what it says",
    ),
    "alarms": Key(
        Maybe([_ALARM]),
        "each [alarm](alarms.md) that is watched here, `of` each pattern or link for which it was raised "
        "once: its `stage` (`raised`, `acknowledged`, `cleared`; `normal` if it never was), `number` of "
        "times raised, `by` whom the stage is, `told` (outlets that told people), `failed` (that gave up), "
        "its `judges` (gateways), and whether this one `leads` them",
    ),
    "parts": Key(
        [_PART],
        "each part that runs here, with the worst state and condition of its links, and a fault",
    ),
    "ends": Key(
        [_EDGE_STATE],
        "links in the picture: the `id` of an edge, its state, and the `hub` and row that count it",
    ),
    "links": Key([_LINK], "each link with `state`, `condition`, `fault` and `losses`, if there are any"),
    "hubs": Key(
        [
            {
                "name": _TEXT, "part": Maybe(_TEXT), "cuts": [_TEXT], "links": [_ROW],
                "pipes": Maybe([_PIPE]), "more_pipes": Maybe(_NUMBER),
            }
        ],
        "each bus and bridge, with its `part`: `cuts` (pipes that carried a loop), `links` (a row each: "
        "totals since the start and `rates`, the `label` that people see, as in the file, and who is at the "
        "`far` end ([whose](#whose-messages)); unless the link has gone also `state`, `condition`, `fault`, "
        "`losses`, its `edges` in the picture, and `down_ms` if it is not up; of a journal, what is `kept` "
        "for each end, whose `state` is when it acknowledges, `synced` or `delivered`, or `plain`, `away`), "
        "`pipes` (up to 64 live peers, "
        "the busiest first) and `more_pipes`",
    ),
    "totals": Key(
        _ACCOUNT | {"rates": Maybe(_RATES)},
        "the sum of all links of all buses and bridges: a message that crosses two of them counts in each",
    ),
    "sums": Key(
        Maybe({_TEXT: _ACCOUNT | {"rates": Maybe(_RATES)}}),
        "the same sum, apart for each far end of links: `outside`, `plant`, `inside`, `broker` "
        "([whose](#whose-messages))",
    ),
    "transit": Key(
        [_TRANSIT],
        "how long sampled batches took from link `one` of a hub to link `other`: `counts` up to each "
        "of `bounds_s` and beyond ([below](#transit))",
    ),
    "brokers": Key(
        [_BROKER],
        "brokers and other services, each with its `kind` and `part`: `counts`, `rejected` by reason, "
        "`leases` with `holder`, `epoch`, `expires_ms` and `candidates`; up to 64 `registrations` of a TMQ "
        "broker, and `services` of a catalog",
    ),
    "candidates": Key(
        [_ROLE],
        "each failover group that this gateway is in: `bridge`, `lease` (the group, if it has one), "
        "`role` (`active`, `standby`, `doubt`, `orphan`, `fenced`; `parallel`), `ready`, `settling` "
        "([after a start](failover.md#the-first-seconds)), `cause`, `epoch`, `holder`, `takeovers`, "
        "`brokers`; `lease_ms` that it claims, "
        "grown by `late_ms` of this machine and the brokers; `takeovers_without_fault` and "
        "`leases_lost_late` ([late](failover.md#late)); `window`, the frames that wait for a takeover or "
        "[were given up](failover.md#the-window), by reason; `unsaid`, announcements that a broker did not "
        "get, by reason",
    ),
    "taps": Key(
        [_TAP],
        "each recorder: messages `captured` and `lost`, also those that its `pattern` leaves out, `losing` "
        "if some were lost within a minute, `waiting_bytes` of the `ring_bytes`, rows `written`, `files` "
        "finished and `deleted`",
    ),
    "values": Key(
        [_VALUE],
        "the newest frames: of up to 256 patterns of each side with a protocol that knows its values (512 in "
        "all), then of up to 64 patterns of buses with `last_values` and of caches, newest first; of devices "
        "that are known, also `unit`, `low` and `high`, and the value as a `number`",
    ),
    "more_values": Key(Maybe(_NUMBER), "values of devices beyond these 512"),
    "memory": Key(
        {"held_bytes": _NUMBER, "limit_bytes": _NUMBER},
        "`held_bytes` that wait for its stream peers or have not come whole from them, and their "
        "`limit_bytes` ([policies](policies.md))",
    ),
    "names": Key([_TEXT], "the names of tokens that the topology of a gateway knows"),
    "events": Key([_EVENT], "the last 256 [events](log.md#events)"),
    "drawing": Key(
        Maybe(_DRAWING), "the topology as a picture: boxes, nodes and edges with ids and places in pixels"
    ),
}  # fmt: skip
"""The keys at the top of a document, in their order."""
STATUS: Final = {name: key.shape for name, key in KEYS.items()}


def fits(value: object, shape: Any = STATUS) -> bool:
    """Return whether a value has at least the keys and items of `shape`.

    A shape is a type; a list with the shape of its items; a record with a shape for each key; or
    `{str: shape}`, for a table of any keys. A key must be there unless its shape is a `Maybe`.
    """
    if isinstance(shape, Maybe):
        return fits(value, shape.shape)
    if isinstance(shape, list):
        return isinstance(value, list) and all(fits(item, shape[0]) for item in value)
    if isinstance(shape, dict):
        return isinstance(value, dict) and _fits_record(value, shape)
    if shape is float:
        return isinstance(value, int | float) and abs(value) <= MOST
    return isinstance(value, shape) and (not isinstance(value, int) or abs(value) <= MOST)


def _fits_record(value: dict[str, Any], shape: dict[Any, Any]) -> bool:
    if str in shape:
        return all(fits(item, shape[str]) for item in value.values())
    return all(
        fits(value[name], inner) if name in value else isinstance(inner, Maybe)
        for name, inner in shape.items()
    )
