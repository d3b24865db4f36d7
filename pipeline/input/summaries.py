"""The summaries at the end of a capture's files, as rows."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from capture import files
from capture.schema import CONTENTS, GATEWAY, Kind

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile

_COLUMNS: Final = (
    "ts_ns", "boot", "cap_seq", "hub", "bus", "peer", "dir", "count", "verdict", "reason", "payload",
    CONTENTS,
)  # fmt: skip


def summaries(path: Path, file: "ParquetFile") -> list[dict[str, Any]]:
    """Return the rows of the groups of a file that have nothing else, with their gateway: those that another
    program put together with others are left out."""
    kind, known = file.schema_arrow.get_field_index("kind"), set(file.schema_arrow.names)
    if not known.issuperset((*_COLUMNS, "kind")):
        return []
    groups = range(file.metadata.num_row_groups)
    own = [n for n in groups if _is_summary(file.metadata.row_group(n).column(kind).statistics)]
    rows = file.read_row_groups(own, columns=list(_COLUMNS)).to_pylist() if own else []
    return [{**row, GATEWAY: files.gateway_of(path)} for row in rows if _is_whole(row[CONTENTS])]


def _is_whole(contents: dict[str, int] | None) -> bool:
    return contents is not None and None not in contents.values()


def _is_summary(kinds: Any) -> bool:
    return kinds is not None and kinds.has_min_max and kinds.min == kinds.max == Kind.CONTENTS.value
