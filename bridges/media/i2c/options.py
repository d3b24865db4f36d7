"""The settings of an I2C bus."""

from dataclasses import dataclass
from typing import Annotated

from bridges.media.options import Options
from bus.schema import Check, Delay, Length, QueueBytes, Range


def _check_targets(targets: tuple[int, ...]) -> None:
    if len(set(targets)) != len(targets):
        raise ValueError("the same target is listed twice")


def parse_alert(text: str) -> tuple[str, int]:
    """Chip and line of `/dev/gpiochip0:17`. ValueError for anything else."""
    chip, _, line = text.rpartition(":")
    if not chip.startswith("/") or not line.isdecimal():
        raise ValueError(f"write the alert line as /dev/gpiochip0:17, not {text!r}")
    return chip, int(line)


def _check_alert(text: str) -> None:
    parse_alert(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class I2cOptions(Options):
    """The settings of an I2C bus."""

    bus: Annotated[int, Range(0, 255), "number N of `/dev/i2c-N`"]
    targets: Annotated[
        tuple[Annotated[int, Range(0x08, 0x77)], ...],
        Length(1, 112),
        Check(_check_targets, ""),
        "7-bit addresses",
    ]
    poll_ms: Annotated[Delay, "time between two polls of an active target"] = 5
    alert: Annotated[
        Annotated[str, Check(_check_alert, "a chip's path and a line")] | None,
        "active-low line that targets pull, `/dev/gpiochip0:17`: read instead of idle polls",
    ] = None
    clock_hz: Annotated[
        int, Range(1_000, 5_000_000), "bus clock; set by the system, told here for the budget"
    ] = 100_000
    queue_bytes: Annotated[QueueBytes, "bound of the queue to each target"] = 65_536

    @property
    def alert_line(self) -> tuple[str, int] | None:
        """Chip and line of `alert`."""
        return parse_alert(self.alert) if self.alert is not None else None

    @property
    def device(self) -> str:
        return str(self.bus)
