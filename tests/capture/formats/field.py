"""CAN frames for tests of the formats, and files that hold them."""

import io
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import BinaryIO, Final

import numpy as np

from bus.wire.identifier import ERROR, EXTENDED, REMOTE
from capture.formats.format import Format, Style
from capture.formats.source import Source
from capture.formats.table import FORMATS
from capture.frames import FD_SIZES, STATE, SWITCH, Frames, joined

FIELD: Final = tuple(one for one in FORMATS if one.writes and (not one.package or find_spec(one.package)))
"""The formats that CAN frames are written in, as far as what they need is installed."""
READERS: Final = {one.key: next((r for r in FORMATS if r.reads and r.signs and one.key.endswith(r.key)), one)
                  for one in FIELD}  # fmt: skip
BEGAN_NS: Final = 1_436_509_052_249_713_000


def one_frame(random: Random, form: Format) -> tuple[int, int, int, bool, bytes]:
    """Return identifier, length, marks, whether it is an FD frame, and data, as a format holds them."""
    identifier = random.randrange(1 << 11)
    if random.random() < 0.4:
        identifier = random.randrange(1 << 29) | EXTENDED
    sort = random.randrange(8)
    if sort == 0 and form.fd:
        size = random.choice(FD_SIZES)
        return identifier, size, random.choice((0, SWITCH, SWITCH | STATE)), True, random.randbytes(size)
    if sort == 1 and form.remote:
        return identifier | REMOTE, random.randrange(9), 0, False, b""
    if sort == 2 and "details" in form.errors_lack:
        return ERROR, 8, 0, False, bytes(8)
    if sort == 2 and form.errors:
        return random.choice((1, 4, 0x40)) | ERROR, 8, 0, False, random.randbytes(8)
    if sort == 3 and form.codes:
        return identifier, 8, random.randrange(9, 16), False, random.randbytes(8)
    size = random.randrange(9)
    return identifier, size, 0, False, random.randbytes(size)


def some(count: int, form: Format, seed: int = 1) -> Frames:
    """Return frames of all sorts that a format holds whole, in the order of time."""
    random = Random(seed)
    rows = [one_frame(random, form) for _ in range(count)]
    data = np.zeros((count, 64 if any(row[3] for row in rows) else 8), np.uint8)
    for number, (_, _, _, _, content) in enumerate(rows):
        data[number, : len(content)] = list(content)
    steps = [random.choice((0, 1, 250, 10**5)) * form.step_ns for _ in rows]
    times = BEGAN_NS + np.cumsum(np.array([0, *steps[1:]], np.int64))
    names = ["can0", "can1"] if form.names()("can1") == "can1" else ["can0"]
    channel = np.array([random.randrange(len(names)) for _ in rows], np.int64)
    is_sent = np.array(
        [form.directions and not row[0] & ERROR and random.random() < 0.3 for row in rows], np.bool_
    )
    columns = (np.array(column) for column in list(zip(*rows, strict=True))[:4])
    ids, sizes, marks, is_fd = columns
    return Frames(
        times, channel, is_sent, ids.astype(np.uint32), sizes.astype(np.uint8), marks.astype(np.uint8),
        is_fd.astype(np.bool_), data, names,
    )  # fmt: skip


def written(form: Format, frames: Frames, style: Style | None = None) -> bytes:
    """Return the file that a format makes of frames."""
    file: BinaryIO = io.BytesIO()
    output = form.output(file, style or {})
    for start in range(0, len(frames), 7):
        output.add(frames.chosen(np.arange(start, min(start + 7, len(frames)))))
    output.close()
    file.seek(0)
    return file.read()


def read_back(path: Path, form: Format) -> tuple[Frames | None, list[str], Style]:
    """Return the frames of a file, what was left out of it, and its style."""
    style: Style = {}
    with Source(path) as source:
        parts = [part for part in READERS.get(form.key, form).read(source, style) if isinstance(part, Frames)]
        told = list(source.told.lines())
    return (joined(parts) if parts else None), told, style


def listed(frames: Frames | None) -> list[tuple[object, ...]]:
    """Return each frame as a tuple of plain values."""
    if frames is None:
        return []
    columns = (column.tolist() for column in frames.columns[:-1])
    return [
        (ts_ns, frames.names[channel], *rest, bytes(data[:size]))
        for (ts_ns, channel, *rest), data, size in zip(
            zip(*columns, strict=True), frames.data, frames.sizes, strict=True
        )
    ]
