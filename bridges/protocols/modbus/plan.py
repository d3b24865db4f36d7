"""The plan of a table: which registers are asked for in one request. Pure."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from bridges.items import Exchange
from bridges.protocols.modbus.pdu import Ask, reading
from bridges.protocols.modbus.protocol import BITS, BITS_MAX, DeviceSettings, Kind, Modbus, Register
from bridges.protocols.modbus.rtu import SILENCE_CHARACTERS, SILENCE_S, framed
from bridges.protocols.protocol import Cycle


class Block(NamedTuple):
    """The registers, or bits, that one request reads: `size` of them, and the values in them."""

    device: int
    kind: Kind
    start: int
    size: int
    poll_s: float
    rows: tuple[Register, ...]

    @property
    def name(self) -> str:
        """The place of the registers, for people."""
        last = f"-{self.start + self.size - 1}" if self.size > 1 else ""
        return f"device {self.device}, {self.kind} {self.start}{last}"

    @property
    def ask(self) -> Ask:
        return reading(self.device, self.kind, self.start, self.size)

    def probe(self) -> Ask:
        """Return a request whose answer has another length than that of `ask`, within the same registers
        where that is possible."""
        few = 8 if self.kind in BITS else 1
        size = self.size - few if self.size > few else self.size + few
        return reading(self.device, self.kind, min(self.start, 65_536 - size), size)

    def bytes_of(self, row: Register, data: bytes) -> bytes:
        """Return the bytes of one value in the data of the answer."""
        at = row.register - self.start
        if self.kind in BITS:
            return bytes([data[at // 8] >> at % 8 & 1])
        return self._word(row.high_register, data) + data[2 * at : 2 * (at + row.count)]

    def power_bytes_of(self, row: Register, data: bytes) -> bytes:
        """Return the bytes of the scale register of a value; b"" if it has none."""
        return self._word(row.scale_register, data)

    def _word(self, register: int | None, data: bytes) -> bytes:
        return b"" if register is None else data[2 * (register - self.start) :][:2]


def planned(record: Modbus) -> list[Block]:
    """Return the fewest requests that read all values of a table, within `gap` and the limits of devices."""
    rows = [row for row in record.registers if row.read]
    found = list[Block]()
    for (device, kind, poll_s), some in groupby(sorted(rows, key=lambda r: _key(record, r)), _group(record)):
        found += _joined(device, kind, poll_s, some, record.settings(device))
    return found


def cycles(record: Modbus) -> Iterator[Cycle]:
    """Yield what a master repeats on a serial line: each request with its answer."""
    silence_s = (record.silence_ms or 0) / 1000 or SILENCE_S
    pause_bytes = 0.0 if record.silence_ms else SILENCE_CHARACTERS
    for block in planned(record):
        size = sum(
            len(framed(block.device, bytes(one))) for one in (len(block.ask.pdu), block.ask.answer_bytes)
        )
        yield Cycle(block.name, block.poll_s, Exchange(size, silence_s, pause_bytes))


def apart(block: Block) -> list[Block]:
    """Return a request for each value of a block: where one of them is refused, the others are read."""
    spans = dict[tuple[int, int], list[Register]]()
    for row in block.rows:
        spans.setdefault(row.span, []).append(row)
    return [
        block._replace(start=start, size=end - start, rows=tuple(rows))
        for (start, end), rows in spans.items()
    ]


def _key(record: Modbus, row: Register) -> tuple[int, str, float, int, int]:
    return row.device, row.kind, _poll_s(record, row), *row.span


def _poll_s(record: Modbus, row: Register) -> float:
    return (row.poll_ms or record.poll_ms) / 1000


def _group(record: Modbus) -> Callable[[Register], tuple[int, Kind, float]]:
    return lambda row: (row.device, row.kind, _poll_s(record, row))


def _joined(
    device: int, kind: Kind, poll_s: float, rows: Iterable[Register], settings: DeviceSettings
) -> Iterator[Block]:
    most, gap = BITS_MAX if kind in BITS else settings.most or 0, settings.gap or 0
    held: list[Register] = []
    start = end = 0
    for row in rows:
        first, behind = row.span
        if held and (first > end + gap or max(end, behind) - start > most):
            yield _block(device, kind, poll_s, start, end, held)
            held = []
        if not held:
            start = end = first
        held.append(row)
        end = max(end, behind)
    if held:
        yield _block(device, kind, poll_s, start, end, held)


def _block(device: int, kind: Kind, poll_s: float, start: int, end: int, rows: Sequence[Register]) -> Block:
    return Block(device, kind, start, end - start, poll_s, tuple(rows))
