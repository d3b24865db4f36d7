"""Rows of captures with signals, made by hand."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from bridges.media.can.socketcan import pack_frame
from bus.names import Names
from bus.wire.frame import PUB
from bus.wire.notation import pattern_of
from capture import files, names, parquet
from capture.schema import Kind, arrow_schema
from pipeline.signals.blocks import Block
from pipeline.signals.reader import Reader
from pipeline.signals.wanted import Wanted

START_NS = 1_795_281_426_000_000_000
MS = 1_000_000
NAMES = ("can", "car", "car/0x", "plant", "temp", "state", "gps", "GP", "GGA", "hall", "tank", "level")


class Seen(NamedTuple):
    """A row: `data` of a message under a pattern, or of a CAN frame on a wire (identifier and data)."""

    ms: float
    pattern: str | int
    data: bytes
    hub: str = "bridge joint"
    bus: str = "can can0"
    dir: int = 0


def row(seen: Seen, number: int) -> dict[str, Any]:
    """Return a row as a recorder writes it."""
    place = {"hub": seen.hub, "bus": seen.bus, "peer": "peer", "dir": seen.dir, "count": 1, "verdict": 0}
    made = {"ts_ns": START_NS + round(seen.ms * MS), "boot": 5, "cap_seq": number, **place}
    if isinstance(seen.pattern, int):
        item = pack_frame((seen.pattern, seen.data, 1 if len(seen.data) > 8 else 0))
        return {**made, "kind": Kind.WIRE.value, "reason": "frames", "payload": item}
    tokens = list(pattern_of(seen.pattern))
    return {**made, "kind": Kind.FRAME.value, "type": int(PUB), "tokens": tokens, "payload": seen.data}


def batch_of(seen: Iterable[Seen]) -> pa.RecordBatch:
    """Return rows as a batch."""
    return pa.RecordBatch.from_pylist([row(one, n) for n, one in enumerate(seen)], schema=arrow_schema())


def capture_of(root: Path, gateways: dict[str, Sequence[Seen]], files_each: int = 2) -> None:
    """Write a capture, with the rows of each gateway in some files."""
    for gateway, seen in gateways.items():
        rows = batch_of(seen)
        for part in np.array_split(np.arange(len(rows)), files_each):
            some = rows.take(pa.array(part))
            day = files.day_of(some.column("ts_ns")[0].as_py())
            path = files.capture_file(root, day, gateway, files.name_of(5, int(part[0])))
            path.parent.mkdir(parents=True, exist_ok=True)
            parquet.write(path, arrow_schema(), [some])
        names.add(files.days_directory(root), gateway, NAMES)


def blocks_of(seen: Iterable[Seen], wanted: Wanted, gateway: str = "gw-a") -> list[Block]:
    """Return the blocks of rows, with the names and roots that a capture tells."""
    known = Names(NAMES)
    whole = wanted._replace(names=known, roots=(*known.roots, tuple(pattern_of("can"))))
    return list(Reader(whole).blocks(batch_of(seen), gateway))


def shown(blocks: Iterable[Block]) -> dict[str, list[Any]]:
    """Return the values by the names of signals: a number, or a text, or both."""
    found = dict[str, list[Any]]()
    for block in blocks:
        none = [None] * len(block.ts_ns)
        numbers = none if block.numbers is None else block.numbers.to_pylist()
        texts = none if block.texts is None else block.texts.to_pylist()
        found.setdefault(block.name, []).extend(
            number if text is None else text if number is None else (number, text)
            for number, text in zip(numbers, texts, strict=True)
        )
    return found
