"""The record of an I2C bus."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final

from bridges.items import Request
from bridges.media.medium import Medium, Taken, Word
from bus.key_types import Delay, QueueBytes
from bus.needs import Device, Library, Need
from bus.schema import Check, Length, Range
from bus.text import whole_in
from bus.wire.envelope import ENVELOPE_BYTES

_LINE_MAX = (1 << 32) - 1
ABSENT: Final = "load its driver (modprobe i2c-dev), or look for its number"
"""The advice about an adapter that is not there."""


def _check_targets(targets: tuple[int, ...]) -> None:
    if len(set(targets)) != len(targets):
        raise ValueError("the same target is listed twice")


def parse_alert(text: str) -> tuple[str, int]:
    """Return chip and line of a text like `/dev/gpiochip0:17`. Raises ValueError for any other text."""
    chip, _, line = text.rpartition(":")
    number = whole_in(line, _LINE_MAX)
    if not chip.startswith("/") or number is None:
        raise ValueError(f"write the alert line as /dev/gpiochip0:17, not {text[:64]!r}")
    return chip, number


def _check_alert(text: str) -> None:
    parse_alert(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class I2c(Medium):
    """An I2C bus: this gateway is the controller, and each target has a 64-byte mailbox."""

    LINK: ClassVar = "bridges.media.i2c.link:I2cLink"
    SPEAKS: ClassVar = "bridges.media.i2c.spoken:I2cSpoken"
    items: ClassVar = ("registers",)
    unrecorded: ClassVar = "its mailboxes are polled all the time"
    key: ClassVar = "i2c"
    help: ClassVar = "an I2C bus"
    words: ClassVar = (
        Word("i2c", ("bus",), "i2c:1?targets=0x42,0x43", "targets on /dev/i2c-1", needed=("targets",)),
    )
    deaf: ClassVar = True
    asks: ClassVar = True

    bus: Annotated[int, Range(0, 255), "number N of `/dev/i2c-N`"]
    targets: Annotated[
        Annotated[tuple[Annotated[int, Range(0x08, 0x77)], ...], Length(1, 112), Check(_check_targets, "")]
        | None,
        "7-bit addresses of the targets with mailboxes; required without a protocol",
    ] = None
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
        """The chip and line of `alert`; None if there is none."""
        return parse_alert(self.alert) if self.alert is not None else None

    @property
    def device(self) -> str:
        return str(self.bus)

    def label(self) -> str:
        targets = ", ".join(f"{target:#04x}" for target in self.targets or ())
        return f"i2c {self.bus}: {targets}" if targets else f"i2c {self.bus}"

    def unfit(self, spoken: bool) -> str:
        if spoken:
            return "with a protocol there are no mailboxes: leave targets out" if self.targets else ""
        return "" if self.targets else "i2c needs targets, or a protocol beside it"

    def takes(self, node: int | None) -> Iterator[Taken]:
        for target in self.targets or ():
            yield Taken(f"I2C bus {self.bus}, target {target:#04x},")

    def needs(self) -> Iterator[Need]:
        yield Library("smbus2", "smbus2", "i2c")
        yield Device(f"/dev/i2c-{self.bus}", ABSENT)
        if self.alert_line is not None:
            yield Device(self.alert_line[0], "run gpiodetect to see the chips")

    def item_seconds(self, item: Any) -> float | None:
        """Return the time of a read register: two addresses, its number, the data, nine clocks each."""
        return (3 + item.read_bytes) * 9 / self.clock_hz if isinstance(item, Request) else None

    def seconds(self, size: int, trunk: bool) -> float | None:
        """Return the longest time of a frame to or from every target, in seconds.

        Assumes an envelope, segments of 30 bytes with a poll for each, and nine clocks a byte.
        """
        carried = size + ENVELOPE_BYTES + 4
        segments = -(-carried // 30)
        return len(self.targets or ()) * (carried + 12 * segments) * 9 / self.clock_hz
