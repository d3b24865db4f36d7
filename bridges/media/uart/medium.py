"""The record of a serial line."""

from collections.abc import Iterator
from dataclasses import dataclass
from os.path import normpath
from typing import TYPE_CHECKING, Any, ClassVar

from bridges.media.medium import Medium, Taken, Word
from bridges.media.uart.options import UartOptions
from bus.wire.envelope import ENVELOPE_BYTES

if TYPE_CHECKING:
    from bridges.media.shedding import Shed
    from bus.hub import Link


@dataclass(frozen=True, slots=True, kw_only=True)
class Uart(UartOptions, Medium):
    """A serial line: COBS with CRC-32."""

    key: ClassVar = "uart"
    help: ClassVar = "a serial line"
    words: ClassVar = (
        Word(
            "uart", ("port",), "uart:/dev/ttyUSB0?baud=115200", "a serial port (also uart:socket://HOST:PORT)"
        ),
        Word(
            "rs485",
            ("port",),
            "rs485:/dev/ttyUSB0?nodes=1,2",
            "a shared pair whose nodes are polled",
            part="rs485",
        ),
    )

    def link(self, node: int | None = None, shed: "Shed | None" = None, **retry: Any) -> "Link":
        if self.rs485 is not None:
            from bridges.media.uart.rs485 import Rs485Link

            return Rs485Link(self, shed=shed, **retry)
        from bridges.media.uart.link import UartLink

        return UartLink(self, shed=shed, **retry)

    def label(self) -> str:
        return f"uart {self.port} {self.baud}{' RS-485' if self.rs485 else ''}"

    @property
    def shared(self) -> bool:
        return self.rs485 is not None

    def takes(self, node: int | None) -> Iterator[Taken]:
        yield Taken(f"serial port {normpath(self.port)}")

    def seconds(self, size: int, trunk: bool) -> float | None:
        """COBS over a message and its CRC-32, a zero on either side, at 8N1 or as the line is set."""
        coded = size + 4 + (ENVELOPE_BYTES if trunk else 0)
        return (coded + coded // 254 + 1 + 2) * self.byte_s
