"""CAN frames as the kernel has them in memory: many in one buffer, made tuples where somebody looks. Pure.

The layout is that of struct can_frame and canfd_frame (linux/can.h; `bridges.media.can.socketcan`). Whoever
can work on columns of the buffer, does; to all others it is a sequence of frames.
"""

import sys
from collections.abc import Iterator, Sequence
from itertools import compress
from struct import Struct
from typing import TypeVar, overload

from bridges.items import ERROR, FD, OWN, STATE, SWITCH, CanFrame

CLASSIC_BYTES, FD_BYTES = 16, 72
STRIDE = FD_BYTES
"""The bytes from one frame of a buffer to the next, of either kind."""

BRS, ESI = 0x01, 0x02
MARKS = tuple((SWITCH if flags & BRS else 0) | (STATE if flags & ESI else 0) | FD for flags in range(256))
"""The marks of an FD frame by its byte of flags; 0x04, CANFD_FDF, only says that it is one."""

FLAGS = tuple((BRS if marks & SWITCH else 0) | (ESI if marks & STATE else 0) for marks in range(16))

_START, _FD_START = Struct("=IB2xB"), Struct("=IBB2x")
_ROW = Struct(f"={STRIDE}s")
_ANY = Struct("=IB3x64s")
ROWS = {CLASSIC_BYTES: Struct("=IB2xB8s56x"), FD_BYTES: Struct("=IBB2x64s")}
_PART = {CLASSIC_BYTES: Struct("=8s8s56x"), FD_BYTES: Struct("=8s64s")}
_KEY = {CLASSIC_BYTES: Struct("=5s3x8s56x"), FD_BYTES: Struct("=5s3x64s")}
_TOP = 3 if sys.byteorder == "little" else 0  # the byte of an identifier with its top bits
_NO_ERRORS = bytes(byte for byte in range(256) if not byte & ERROR >> 24)

Part = tuple[bytes, bytes]
"""The first 8 bytes of a frame, and its data with zeros behind them."""


T = TypeVar("T")


class Lazy(Sequence[T]):
    """Items that a subclass makes, all at once, where somebody looks at one."""

    __slots__ = ("_items",)

    def __init__(self) -> None:
        self._items: list[T] | None = None

    @overload
    def __getitem__(self, place: int) -> T: ...
    @overload
    def __getitem__(self, place: slice) -> list[T]: ...
    def __getitem__(self, place: int | slice) -> T | list[T]:
        return self._made()[place]

    def __iter__(self) -> Iterator[T]:
        return iter(self._made())

    def _made(self) -> list[T]:
        if self._items is None:
            self._items = self._make()
        return self._items

    def _make(self) -> list[T]:
        raise NotImplementedError


class Packed(Lazy[CanFrame]):
    """Frames of one kind, `STRIDE` bytes apart in `data`, each `size` bytes long: 16, or 72 of CAN FD.

    `owns` has a mark for each: `OWN` or 0. It is empty if none is our own.
    """

    __slots__ = ("_count", "data", "owns", "size")

    def __init__(self, data: bytes, size: int, owns: Sequence[int] = ()) -> None:
        super().__init__()
        self.data, self.size, self.owns = data, size, owns
        self._count = len(data) // STRIDE

    def __len__(self) -> int:
        return self._count

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._made() == list(other)

    __hash__ = None  # type: ignore[assignment]  # as that of a list

    def _make(self) -> list[CanFrame]:
        found, owns = ROWS[self.size].iter_unpack(self.data), self.owns or (0,) * len(self)
        if self.size == FD_BYTES:
            return [
                (number, data[:size], own | MARKS[flags])
                for (number, size, flags, data), own in zip(found, owns, strict=True)
            ]
        return [
            (number, data[:size], own | code << 4 if code and size == 8 < code < 16 else own)
            for (number, size, code, data), own in zip(found, owns, strict=True)
        ]

    @property
    def parts(self) -> list[Part]:
        """The first 8 bytes of each frame, of which the fifth is the length, and the rest."""
        return list(_PART[self.size].iter_unpack(self.data))

    @property
    def keys(self) -> list[Part]:
        """The identifier and length of each frame, and its data: what a driver keeps of it."""
        return list(_KEY[self.size].iter_unpack(self.data))

    @property
    def has_errors(self) -> bool:
        """Whether there is an error frame."""
        return bool(self.data[_TOP::STRIDE].translate(None, _NO_ERRORS))

    @property
    def own(self) -> int:
        """The number of our own frames."""
        return self.owns.count(OWN)

    def first(self, count: int) -> "Packed":
        """Return the first frames."""
        if count >= len(self):
            return self
        return Packed(self.data[: STRIDE * count], self.size, self.owns[:count])

    def split(self) -> "tuple[Packed, Packed]":
        """Return our own frames, and those of others."""
        nobody, own = Packed(b"", self.size), self.owns.count(OWN)
        if own in (0, self._count):
            return (self, nobody) if own else (nobody, self)
        rows = [row for (row,) in _ROW.iter_unpack(self.data)]
        ours = b"".join(compress(rows, self.owns))
        others = b"".join(compress(rows, (not own for own in self.owns)))
        return Packed(ours, self.size, (OWN,) * own), Packed(others, self.size)


def frames_in(data: bytes) -> Iterator[CanFrame]:
    """Yield the frames of a buffer, of either kind, without marks."""
    for number, size, rest in _ANY.iter_unpack(data):
        yield number, rest[:size], 0


def part_of(frame: CanFrame) -> Part:
    """Return what `Packed.parts` has of a frame."""
    number, data, marks = frame
    if marks & FD:
        return _FD_START.pack(number, len(data), FLAGS[marks & 15]), bytes(data).ljust(64, b"\0")
    return _START.pack(number, len(data), marks >> 4), bytes(data).ljust(8, b"\0")


def has_fd(frames: Sequence[CanFrame]) -> bool:
    """Tell whether one of these is a CAN FD frame."""
    if isinstance(frames, Packed):
        return frames.size == FD_BYTES
    return any(frame[2] & FD for frame in frames)


def is_own(frames: Sequence[CanFrame]) -> bool:
    """Tell whether all of these are our own."""
    if isinstance(frames, Packed):
        return frames.own == len(frames)
    return all(frame[2] & OWN for frame in frames)


def joined(items: Sequence[bytes]) -> Sequence[CanFrame]:
    """Return the frames in the kernel's own bytes of each, 16 or 72."""
    sizes = set(map(len, items))
    if sizes == {CLASSIC_BYTES}:
        return Packed(_REST.join(items) + _REST, CLASSIC_BYTES)
    if sizes == {FD_BYTES}:
        return Packed(b"".join(items), FD_BYTES)
    return [Packed(item.ljust(STRIDE, b"\0"), len(item))[0] for item in items]


_REST = bytes(STRIDE - CLASSIC_BYTES)
