"""The settings and facts of a tap. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Final

from bus.key_types import Bytes, Names, Path, Seconds, TapName
from bus.needs import Directory, Need, Room
from bus.schema import Length, Range, Single
from devices.device import CAPTURE_LIBRARIES, DeviceSpec

_PART_BYTES: Final = 8 << 20
_PARTS_MAX: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class RecorderSpec(DeviceSpec):
    """A device that records the frames in the buses and bridges that it `joins`."""

    part: ClassVar = "recorder"
    inside: ClassVar = True

    directory: Annotated[Path, "where captures are written"]
    file_bytes: Annotated[Bytes, "size at which a new file begins"] = 64 << 20
    file_s: Annotated[Seconds, "age at which a new file begins"] = 60
    keep_bytes: Annotated[Bytes, "size at which the oldest file is deleted"] = 1 << 30
    keep_days: Annotated[
        Annotated[float, Range(0.001, 36500)] | None,
        "age at which a file is deleted; by default files are deleted by size only",
    ] = None
    queue_bytes: Annotated[
        Annotated[int, Range(1 << 20, 1 << 34)] | None,
        "bound of the queue to the disk; more is not recorded, but counted; by default 8 MiB for each part "
        "that it records, up to 32 MiB",
    ] = None
    yields: Annotated[bool, "write only in spare processor time, and pause if there is too little"] = True

    @property
    def recorded(self) -> tuple[int | str, ...]:
        """The pattern of the frames to record; () for all."""
        return ()

    @property
    def ring_bytes(self) -> int:
        """The size of the queue to the writer."""
        return self.queue_bytes or min(_PARTS_MAX, len(self.joins)) * _PART_BYTES

    @property
    def longest_bytes(self) -> int:
        from devices.tap.ring import longest_bytes  # only a check asks

        return longest_bytes(self.ring_bytes)

    def writes(self) -> Iterator[str]:
        yield self.directory

    def needs(self) -> Iterator[Need]:
        yield from CAPTURE_LIBRARIES
        yield Directory(self.directory)
        yield Room(self.directory, self.keep_bytes, "keep_bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class TapSpec(RecorderSpec):
    """A tap, which records the traffic of buses and bridges (docs/capture.md)."""

    key: ClassVar = "tap"
    help: ClassVar = "records traffic"

    tap: Annotated[
        tuple[TapName, ...], Length(1, 64), Single(), "the buses and bridges of that gateway to record"
    ]
    pattern: Annotated[Names, "only frames that start with this are recorded"] = ()
    wire: Annotated[bool, "record what is on the wires of sides, too"] = False

    def __post_init__(self) -> None:
        if len(set(self.tap)) != len(self.tap):
            raise ValueError("the same part is listed twice in tap: its messages would be recorded twice")

    @property
    def joins(self) -> tuple[str, ...]:
        return self.tap

    def label(self, joined: Sequence[str]) -> str:
        return f"tap of {', '.join(joined)}, to {self.directory}"

    @property
    def recorded(self) -> tuple[int | str, ...]:
        return self.pattern

    @property
    def records_wires(self) -> bool:
        return self.wire

    def patterns(self) -> Iterator[tuple[int | str, ...]]:
        yield self.pattern
