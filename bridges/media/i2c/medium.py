"""The record of an I2C bus."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from bridges.media.i2c.options import I2cOptions
from bridges.media.medium import Medium, Taken, Word
from bus.wire.envelope import ENVELOPE_BYTES

if TYPE_CHECKING:
    from bridges.media.shedding import Shed
    from bus.hub import Link


@dataclass(frozen=True, slots=True, kw_only=True)
class I2c(I2cOptions, Medium):
    """An I2C bus, this gateway its controller: a 64-byte mailbox in each target."""

    key: ClassVar = "i2c"
    help: ClassVar = "an I2C bus"
    words: ClassVar = (Word("i2c", ("bus",), "i2c:1?targets=0x42,0x43", "targets on /dev/i2c-1"),)
    deaf: ClassVar = True

    def link(self, node: int | None = None, shed: "Shed | None" = None, **retry: Any) -> "Link":
        from bridges.media.i2c.link import I2cLink

        return I2cLink(self, shed=shed, **retry)

    def label(self) -> str:
        return f"i2c {self.bus}: {', '.join(f'{target:#04x}' for target in self.targets)}"

    def takes(self, node: int | None) -> Iterator[Taken]:
        for target in self.targets:
            yield Taken(f"I2C bus {self.bus}, target {target:#04x},")

    def seconds(self, size: int, trunk: bool) -> float | None:
        """To or from every target, in an envelope: segments of 30 bytes, each polled, nine clocks a byte."""
        carried = size + ENVELOPE_BYTES + 4
        segments = -(-carried // 30)
        return len(self.targets) * (carried + 12 * segments) * 9 / self.clock_hz
