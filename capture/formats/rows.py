"""Rows of a capture made of packets of pcapng, many at a time. Needs numpy and pyarrow."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Any, Final

import numpy as np
import pyarrow as pa

from capture import messages
from capture.messages import NO_MESSAGE, PAD
from capture.pcapng import Packet
from capture.schema import COLUMNS, TOLD, Kind

_CODES: Final = frozenset(kind for kind in Kind if kind not in {Kind.CONTENTS, *TOLD})


def are_rows(packet: Packet) -> bool:
    """Return whether a packet is a row that a capture file has: of a known kind, with a name of a gateway."""
    return packet.kind in _CODES and 0 <= packet.boot < 1 << 63 and 0 <= packet.cap_seq < 1 << 63


def batches(packets: Sequence[Packet], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Make batches of rows of packets of one run of a recorder, in their order. Kinds may alternate."""
    places = defaultdict[int, list[int]](list)
    for place, packet in enumerate(packets):
        places[packet.kind].append(place)
    parts = [_of_kind(kind, [packets[at] for at in its], schema) for kind, its in places.items()]
    if len(parts) < 2:
        yield from parts
        return
    order = np.argsort(np.concatenate(list(places.values())))
    yield from pa.Table.from_batches(parts).take(pa.array(order)).combine_chunks().to_batches()


def _of_kind(kind: int, run: list[Packet], schema: pa.Schema) -> pa.RecordBatch:
    count = len(run)
    columns: dict[str, Any] = {
        name: pa.nulls(count, schema.field(name).type) for name in (*NO_MESSAGE, "message_bytes", "payload")
    }
    fields = dict(zip(Packet._fields, zip(*run, strict=True), strict=True))
    columns |= {name: fields[name] for name in _SAME}
    columns |= {"count": fields["messages"], "reason": pa.nulls(count, pa.string())}
    columns |= _OWN.get(kind, _of_words)(run)
    arrays = [_array(columns[one.name], schema.field(one.name).type) for one in COLUMNS]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


_SAME: Final = ("ts_ns", "boot", "cap_seq", "kind", "hub", "bus", "peer", "dir", "verdict")


def _array(values: Any, kind: pa.DataType) -> pa.Array:
    return values if isinstance(values, pa.Array) else pa.array(values, kind)


def _of_messages(run: list[Packet]) -> dict[str, Any]:
    sizes = [len(packet.message) for packet in run]
    data = b"".join([*(packet.message for packet in run), PAD])
    start = np.array([0, *accumulate(sizes[:-1])], np.int64)
    columns, _ = messages.columns(data, start, np.array(sizes, np.int64))
    columns["message_bytes"] = pa.array(columns["message_bytes"]).cast(pa.int32())
    return {
        name: column.cast(pa.list_(pa.uint32())) if name == "tokens" else column
        for name, column in columns.items()
    }


def _of_items(run: list[Packet]) -> dict[str, Any]:
    parts = [packet.message.partition(b":") for packet in run]
    words = [word.decode(errors="replace") for word, _, _ in parts]
    items = [item for _, _, item in parts]
    return {"reason": words, "payload": items, "message_bytes": [len(item) for item in items]}


def _of_words(run: list[Packet]) -> dict[str, Any]:
    return {"reason": [packet.message.decode(errors="replace") for packet in run]}


_OWN: Final[dict[int, Callable[[list[Packet]], dict[str, Any]]]] = {
    Kind.FRAME: _of_messages, Kind.WIRE: _of_items
}  # fmt: skip
