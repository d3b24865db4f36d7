"""The record of a Cyphal subject that stands for one whole pattern (docs/wire/can.md). Pure."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Final, Literal, get_args

from bus.schema import Check, Range, Record, check_fields
from bus.wire.frame import DATA_BYTES_MAX

SUBJECT_MAX: Final = 0x1FFF
RESERVED_FROM: Final = 6144
"""The first subject id of the standard's own data types: fixed ids of vendors, then of the standard."""
HEARTBEAT: Final = 7509
"""The subject on which each node tells that it lives: uavcan.node.Heartbeat."""
PORTS: Final = 7510
"""The subject on which a node may tell what it sends and hears: uavcan.node.port.List."""
Priority = Literal["exceptional", "immediate", "fast", "high", "nominal", "low", "slow", "optional"]
PRIORITIES: Final = get_args(Priority)


def bounds(text: str) -> tuple[int, int]:
    """Return the first and the last number of a range such as `4100-4199`. Raises ValueError."""
    low, dash, high = text.partition("-")
    if not dash or not (low.strip().isdecimal() and high.strip().isdecimal()):
        raise ValueError(f'"{text[:32]}" is no subject: write a number, or a range such as 4100-4199')
    if not int(low) <= int(high) <= SUBJECT_MAX:
        raise ValueError(
            f"{text[:32]} is no range of subjects: they go from 0 to {SUBJECT_MAX}, lowest first"
        )
    return int(low), int(high)


def _check_subject(subject: int | str) -> None:
    if isinstance(subject, str):
        bounds(subject)
    elif not 0 <= subject <= SUBJECT_MAX:
        raise ValueError(f"{subject} is out of range: 0 to {SUBJECT_MAX}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject(Record):
    """The Cyphal subject of one whole pattern: its messages are the data of frames."""

    SHORT: ClassVar = "subject"
    subject: Annotated[
        int | str,
        Check(_check_subject, "a subject id or a range"),
        "subject id, 0 to 8191; or a range, in place of which `check --write` puts a free one",
    ]
    priority: Annotated[Priority, "of its messages on the bus"] = "nominal"
    data_bytes: Annotated[
        Annotated[int, Range(0, DATA_BYTES_MAX)] | None,
        "bytes of its data: cuts the zeros off that CAN FD pads with",
    ] = None

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def number(self) -> int | None:
        """The subject id; None while only a range is known."""
        return self.subject if isinstance(self.subject, int) else None

    @property
    def words(self) -> str:
        """The subject for people, such as `subject 4100 high`."""
        more = "" if self.priority == "nominal" else f" {self.priority}"
        size = "" if self.data_bytes is None else f", {self.data_bytes} bytes"
        return f"subject {self.subject}{more}{size}"
