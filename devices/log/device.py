"""The settings of a log, a recorder of the log lines that gateways publish. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from bus.key_types import BusName
from bus.logs import WORD
from bus.schema import Length, Single
from devices.tap.device import RecorderSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSpec(RecorderSpec):
    """A log, which stores the lines that gateways publish on buses (docs/log.md)."""

    key: ClassVar = "log"
    help: ClassVar = "stores the log of all gateways"

    log: Annotated[
        tuple[BusName, ...], Length(1, 64), Single(), "the buses of that gateway whose lines it stores"
    ]

    def __post_init__(self) -> None:
        if len(set(self.log)) != len(self.log):
            raise ValueError("the same bus is listed twice in log: its lines would be stored twice")

    @property
    def joins(self) -> tuple[str, ...]:
        return self.log

    @property
    def recorded(self) -> tuple[int | str, ...]:
        return tuple(WORD.split("/"))

    def label(self, joined: Sequence[str]) -> str:
        return f"log of {', '.join(joined)}, to {self.directory}"

    def patterns(self) -> Iterator[tuple[int | str, ...]]:
        yield self.recorded
