"""Links from one set of settings: the fields of the medium's record, and the link's own arguments."""

from collections.abc import Iterable
from typing import Any

from bridges.media.can.link import CanLink
from bridges.media.can.medium import Can
from bridges.media.i2c.link import I2cLink
from bridges.media.i2c.medium import I2c
from bridges.media.multicast.link import MulticastLink
from bridges.media.multicast.medium import Multicast
from bridges.media.tcp.link import TcpFramesLink
from bridges.media.tcp.medium import Tcp
from bridges.media.uart.link import UartLink
from bridges.media.uart.medium import Rs485, Uart
from bridges.media.uart.rs485 import Rs485Link
from bridges.simulate.wire import divide

CAN_GROUP = "239.74.163.2"
"""The address of a CAN bus over UDP multicast."""


def uart_link(port: str, baud: int = 115_200, **settings: Any) -> UartLink:
    fields, rest = divide(Uart, settings)
    return UartLink(Uart(port=port, baud=baud, **fields), **rest)


def rs485_link(port: str, nodes: Iterable[int] = (1, 2), **settings: Any) -> Rs485Link:
    pair, settings = divide(Rs485, settings)
    fields, rest = divide(Uart, settings)
    return Rs485Link(Uart(port=port, rs485=Rs485(nodes=tuple(nodes), **pair), **fields), **rest)


def can_link(interface: str, channel: str, node: int | None, **settings: Any) -> CanLink:
    """Make a link on which nothing is stale because this process had no turn, unless an age is given."""
    fields, rest = divide(Can, {"age_ms": 60_000} | settings)
    return CanLink(Can(interface=interface, channel=channel, node=node, **fields), **rest)


def i2c_link(bus: int, targets: Iterable[int], **settings: Any) -> I2cLink:
    fields, rest = divide(I2c, settings)
    return I2cLink(I2c(bus=bus, targets=tuple(targets), **fields), **rest)


def multicast_link(group: str, port: int, interface: str, **settings: Any) -> MulticastLink:
    fields, rest = divide(Multicast, settings)
    return MulticastLink(Multicast(group=group, port=port, interface=interface, **fields), **rest)


def tcp_link(
    host: str, port: int, mode: Any = "dial", framing: Any = "frames", **settings: Any
) -> TcpFramesLink:
    fields, rest = divide(Tcp, settings)
    return TcpFramesLink(Tcp(host=host, port=port, mode=mode, framing=framing, **fields), **rest)
