"""The description of CAN messages and their signals, as a database has it. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from bridges.items import EXTENDED, FD
from bridges.protocols.dbc.j1939.pgn import absent_from, absent_in_nmea, is_of_nmea, pgn_of

BITS_MAX: Final = 512
"""The bits of the longest signal that is read."""
_FRAME_BYTES: Final = 8


class Flaw(NamedTuple):
    """A fault of a database. `message` names the one that it is about; `blocks`: that cannot be sent."""

    text: str
    message: str
    blocks: bool = False


@dataclass(frozen=True, slots=True)
class Signal:
    """A signal: some bits of a message, which are a number.

    `start` and `bits` are as in DBC: a little-endian signal (Intel) starts at its lowest bit, a big-endian
    one (Motorola) at its highest, counted from the lowest bit of byte 0. Its value is `raw * scale + offset`,
    or the text of `choices` for some raw numbers. `low` and `high` bound the value. A signal with `ids` is
    there only if the signal `selector` has one of these numbers.
    """

    name: str
    start: int
    bits: int
    is_big: bool = False
    is_signed: bool = False
    is_float: bool = False
    scale: float = 1
    offset: float = 0
    low: float | None = None
    high: float | None = None
    unit: str = ""
    choices: Mapping[int, str] = field(default_factory=dict, hash=False)
    is_selector: bool = False
    selector: str = ""
    ids: frozenset[int] | None = None

    @property
    def is_plain(self) -> bool:
        """Whether a raw number is its value."""
        return self.scale == 1 and self.offset == 0


@dataclass(frozen=True, slots=True)
class Message:
    """A message: its identifier without top bits, its data in bytes, and its signals.

    `senders` are the nodes that send it, and `cycle_ms` is the time between two frames, 0 if none is given.
    `is_j1939`: the parameter group number in the identifier names it, whatever its source and priority are.
    """

    name: str
    id: int
    size: int
    signals: tuple[Signal, ...]
    is_extended: bool = False
    is_fd: bool = False
    senders: tuple[str, ...] = ()
    cycle_ms: int = 0
    is_j1939: bool = False

    @property
    def identifier(self) -> int:
        """The identifier with its top bits, as items have it."""
        return self.id | (EXTENDED if self.is_extended else 0)

    @property
    def is_of_nmea(self) -> bool:
        """Whether it is of NMEA 2000, by its PGN."""
        return self.is_j1939 and is_of_nmea(pgn_of(self.id))

    @property
    def is_fast(self) -> bool:
        """Whether it comes in fast packets: it is of NMEA 2000, and has more data than a frame."""
        return self.size > _FRAME_BYTES and self.is_of_nmea

    def absent(self, signal: Signal) -> tuple[int, int, int]:
        """Return the raw numbers, unsigned, from which on a signal of it has an error, is not available, and
        has a value again."""
        none = 1 << signal.bits
        if not self.is_j1939 or signal.is_float:
            return none, none, none
        if self.is_of_nmea:
            return absent_in_nmea(signal.bits, signal.is_signed, signal.choices)
        return *absent_from(signal.bits, signal.choices), none

    @property
    def marks(self) -> int:
        """The marks of its frames."""
        return FD if self.is_fd else 0


@dataclass(frozen=True, slots=True)
class Database:
    """The messages of a database by name, its nodes, and its flaws."""

    messages: Mapping[str, Message]
    nodes: tuple[str, ...] = ()
    flaws: tuple[Flaw, ...] = ()

    def sent_by(self, node: str) -> tuple[str, ...]:
        """Return the names of the messages that a node sends."""
        return tuple(name for name, message in self.messages.items() if node in message.senders)
