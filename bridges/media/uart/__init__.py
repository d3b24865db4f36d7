"""Serial lines as links: a line for two, or a polled pair (docs/wire/uart.md)."""

from bridges.media.uart.link import UartLink
from bridges.media.uart.rs485 import Rs485Link

__all__ = ["Rs485Link", "UartLink"]
