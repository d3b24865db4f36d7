"""The rows of a capture: columns, codes and metadata, in one place for its writer and its readers.

Plain data. `pyarrow` is imported when an Arrow schema is asked for, `pyspark` never: it takes the DDL.
docs/capture.md says the same in words.
"""

from collections.abc import Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    import pyarrow

TIME_MAX_NS: Final = (1 << 63) - 1
"""The last time that a row can have, in ns since 1970: its column is an i64. It is in 2262."""
VERSION: Final = 2
"""The version of this schema. A reader takes its own version and older ones, and refuses later ones by name.
2 added `contents`."""

META_PREFIX: Final = "buscoupler."
META_VERSION: Final = f"{META_PREFIX}capture.version"
META_GATEWAY: Final = f"{META_PREFIX}capture.gateway"
META_BOOT: Final = f"{META_PREFIX}capture.boot"
META_RECORDER: Final = f"{META_PREFIX}capture.recorder"
META_TOPOLOGY: Final = f"{META_PREFIX}capture.topology"
META_DAY: Final = f"{META_PREFIX}capture.day"
"""The key of the day, in UTC, on which a recorder got the rows of a file. Their own times may be earlier."""
META_SOURCE: Final = f"{META_PREFIX}capture.source"
"""The key of the source of imported rows: their file, its format and how that writes, as JSON."""

ANY: Final = -1
"""Any token, in a pattern of a topology. Frames are told apart by it."""

Hubs = Mapping[str, Mapping[str, Any]]
"""A topology: the hubs that a file was recorded at, by name, as JSON takes it (docs/capture.md).

Each has the `gateways` that may run it. A bus that hears other buses by trunks has `trunks`, their names. A
bridge has the `pattern` of what it carries, and its `sides`: a `segment`, and lists of patterns `allow`,
`deny`, `allow_in`, `deny_in`, `allow_out`, `deny_out`; `listens` where it waits to be dialled. Patterns are
lists of tokens."""

DATE: Final = "date"  # partitions of the path, so not in the file: date=YYYY-MM-DD, in UTC
GATEWAY: Final = "gateway"  # gateway=NAME
BRIDGE: Final = "bridge "
"""The beginning of the names of hubs that carry frames from one segment to others."""


class Kind(IntEnum):
    """The kinds of rows."""

    FRAME = 0
    """One message that passed. `count` is 1."""
    LEDGER = 1
    """`count` more messages since the row before, of one link and `reason`, as its hub's account has them."""
    GAP = 2
    """The tap could not keep up: `count` messages have no row. `cap_seq` has a hole as wide before it."""
    CONTENTS = 3
    """The amount of one sort of rows, at the end of a capture file. Nothing that was recorded."""
    NAMES = 4
    """Names of tokens, one a line. In pcapng alone."""
    TOPOLOGY = 5
    """The hubs that rows were recorded at and what passes there, as JSON. In `contents`, and in pcapng."""
    EVENT = 6
    """A bridge's candidate told something: `reason` is the event's kind (`bus.events`), a colon, a cause."""
    WIRE = 7
    """One item on the wire of a side with a protocol: `reason` names the items (`bridges.items`), `payload`
    is the item. A CAN frame is a struct can_frame or canfd_frame of the kernel."""


TOLD: Final = frozenset({Kind.NAMES, Kind.TOPOLOGY})
"""The kinds of packets of pcapng that are no rows."""


class Direction(IntEnum):
    """The direction of a message, seen from the appliance."""

    RX = 0
    """The segment `bus` brought it to the appliance."""
    TX = 1
    """The appliance put it onto the segment `bus`."""


class Verdict(IntEnum):
    """The fate of messages: OK in a frame's row, by its `reason` in a ledger's."""

    OK = 0
    DUPLICATE = 1
    STANDBY = 2
    QUEUE_FULL = 3
    PATTERN = 4
    ECHO = 5
    HOPS = 6
    LOOP = 7
    MALFORMED = 8
    AGE = 9
    CLOSED = 10
    NOT_CAPTURED = 11
    OTHER = 99


ITEMS: Final = "items"
"""The ledger's word for the items on the wire of a side with a protocol."""

_WORDS: Final = {
    Verdict.OK: ("received", "sent", ITEMS),
    Verdict.DUPLICATE: ("duplicate",),
    Verdict.STANDBY: ("standby",),
    Verdict.QUEUE_FULL: ("queue full", "overrun", "kernel buffer full", "conflated", "shed"),
    Verdict.PATTERN: ("pattern", "no frame"),
    Verdict.ECHO: ("echo",),
    Verdict.HOPS: ("hops",),
    Verdict.LOOP: ("loop",),
    Verdict.MALFORMED: ("malformed", "framing", "unreadable", "foreign"),
    Verdict.AGE: ("stale", "aged out"),
    Verdict.CLOSED: ("closed", "peer gone", "no peer", "no device"),
    Verdict.NOT_CAPTURED: ("not captured",),
}
_VERDICTS: Final = {word: verdict for verdict, words in _WORDS.items() for word in words}


def verdict_of(reason: str) -> Verdict:
    """Return the verdict of a ledger's word; `Verdict.OTHER` for one that is not known here."""
    return _VERDICTS.get(reason, Verdict.OTHER)


class Column(NamedTuple):
    """A column: `arrow` names a pyarrow type function, `sql` Spark's type for the same in Parquet."""

    name: str
    arrow: str
    sql: str
    nullable: bool
    text: str


COLUMNS: Final = (
    Column("ts_ns", "int64", "BIGINT", False, "when, in ns since 1970, by the gateway's clock"),
    Column("boot", "int64", "BIGINT", False, "which run of the recorder: when it started, in ns since 1970"),
    Column("cap_seq", "int64", "BIGINT", False, "number of the row: dense within gateway and boot, from 0"),
    Column(
        "kind", "int16", "SMALLINT", False, "0 frame, 1 ledger, 2 gap, 3 contents, 6 event, 7 item on a wire"
    ),
    Column("hub", "string", "STRING", False, "where it was seen: `bus NAME` or `bridge NAME`"),
    Column("bus", "string", "STRING", False, "the segment on whose side: a bus, a bridge's wire"),
    Column(
        "peer",
        "string",
        "STRING",
        False,
        "the pipe that brought it, or got it; for ledgers the link",
    ),
    Column("dir", "int16", "SMALLINT", False, "0 received from the segment, 1 put onto it"),
    Column("count", "int64", "BIGINT", False, "messages that the row stands for: 1 for a frame"),
    Column("verdict", "int16", "SMALLINT", False, "0 passed; else what became of them"),
    Column(
        "reason",
        "string",
        "STRING",
        True,
        "the ledger's word, in rows of kind 1 and 2; what happened, of kind 6; which items, of kind 7",
    ),
    Column("message_bytes", "int32", "INT", True, "of the message as it was moved, envelope and all"),
    Column("origin", "int64", "BIGINT", True, "of the envelope (u32); null without one"),
    Column("seq", "int64", "BIGINT", True, "of the envelope (u32); null without one"),
    Column("hops", "int16", "SMALLINT", True, "left, of the envelope; null without one"),
    Column("type", "int16", "SMALLINT", True, "of the TMQ frame; null if the message is none"),
    Column("tokens", "list_uint32", "ARRAY<BIGINT>", True, "of the frame; null if the message is none"),
    Column(
        "payload",
        "binary",
        "BINARY",
        True,
        "the frame's data; all but the envelope if it is no frame; JSON of a topology; an item",
    ),
)

CONTENTS: Final = "contents"
CONTENTS_FIELDS: Final = {
    "kind": ("int16", "SMALLINT"), "rows": ("int64", "BIGINT"), "enveloped": ("int64", "BIGINT"),
    "last_cap_seq": ("int64", "BIGINT"), "last_ns": ("int64", "BIGINT"),
}  # fmt: skip
"""The last column of capture files, null but in rows of kind 3; types as Arrow and as Spark name them."""
_CONTENTS_SQL: Final = ", ".join(f"{name}: {sql}" for name, (_, sql) in CONTENTS_FIELDS.items())

DDL: Final = (
    ", ".join(f"{column.name} {column.sql}" for column in COLUMNS) + f", {CONTENTS} STRUCT<{_CONTENTS_SQL}>"
)
"""The columns for `reader.schema(...)`, without the partition columns."""
DDL_PARTITIONED: Final = f"{DDL}, {DATE} DATE, {GATEWAY} STRING"


def arrow_schema(metadata: Mapping[str, str] | None = None) -> "pyarrow.Schema":
    """Make the Arrow schema of the columns; `metadata` becomes the file's key-value pairs."""
    import pyarrow as pa

    def type_of(name: str) -> "pyarrow.DataType":
        return pa.list_(pa.uint32()) if name == "list_uint32" else getattr(pa, name)()

    fields = [pa.field(c.name, type_of(c.arrow), c.nullable) for c in COLUMNS]
    return pa.schema(fields, metadata=dict(metadata) if metadata else None)


def file_schema(rows: "pyarrow.Schema") -> "pyarrow.Schema":
    """Make the schema of a capture file from that of its rows: with `contents`, and of this version."""
    import pyarrow as pa

    fields = [pa.field(name, getattr(pa, arrow)()) for name, (arrow, _) in CONTENTS_FIELDS.items()]
    metadata = {**(rows.metadata or {}), META_VERSION.encode(): str(VERSION).encode()}
    return rows.append(pa.field(CONTENTS, pa.struct(fields))).with_metadata(metadata)
