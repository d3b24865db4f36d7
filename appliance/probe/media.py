"""The media that a word can name: their settings, and how the link is made; one row of a table a medium."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from bus.errors import LinkError
from bus.hub import Link

RETRY_MAX_S = 1.0  # somebody waits at the keyboard

Reader = Callable[[str], Any]


def switch(text: str) -> bool:
    words = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    if text.lower() not in words:
        raise ValueError
    return words[text.lower()]


def whole(text: str) -> int:
    return int(text, 0)


def wholes(text: str) -> tuple[int, ...]:
    return tuple(whole(part) for part in text.split(","))


KINDS = {
    switch: "true or false",
    whole: "a whole number",
    wholes: "whole numbers with commas",
    float: "a number",
    str: "text",
}


class Medium(NamedTuple):
    """`settings` by name; `needed` are those without a default; `others`: a driver takes more of its own.

    `link(target, settings)` makes the link, not yet open, or raises `LinkError`.
    """

    settings: Mapping[str, Reader]
    link: Callable[[str, dict[str, Any]], Link]
    needed: Mapping[str, str] = {}
    others: bool = False


def _uart(port: str, settings: dict[str, Any]) -> Link:
    from bridges.media.uart.link import UartLink

    return UartLink(port, retry_max_s=RETRY_MAX_S, **settings)


def _rs485(port: str, settings: dict[str, Any]) -> Link:
    from bridges.media.uart.rs485 import Rs485Link

    return Rs485Link(port, retry_max_s=RETRY_MAX_S, **settings)


# what is said here is to arrive, however long the bus takes: a gateway gives up what is half a second old
_CAN_DEFAULTS: dict[str, Any] = {"interface": "socketcan", "age_ms": 10_000}


def _can(channel: str, settings: dict[str, Any]) -> Link:
    from bridges.media.can.link import CanLink

    return CanLink(channel=channel, retry_max_s=RETRY_MAX_S, **(_CAN_DEFAULTS | settings))


def _multicast(target: str, settings: dict[str, Any]) -> Link:
    from bridges.media.multicast.link import MulticastLink

    group, port = host_and_port(target)
    return MulticastLink(group, port, retry_max_s=RETRY_MAX_S, **settings)


def _i2c(target: str, settings: dict[str, Any]) -> Link:
    from bridges.media.i2c.link import I2cLink

    try:
        bus = whole(target)
    except ValueError as error:
        raise LinkError(f"i2c:{target}: write the number N of /dev/i2c-N") from error
    return I2cLink(bus, retry_max_s=RETRY_MAX_S, **settings)


def _frames(target: str, settings: dict[str, Any]) -> Link:
    from bridges.media.tcp.link import TcpFramesLink

    host, port = host_and_port(target)
    return TcpFramesLink(host, port, retry_max_s=RETRY_MAX_S, **settings)


def host_and_port(target: str) -> tuple[str, int]:
    """`HOST:PORT`, `[v6]:PORT`. Raises `LinkError`."""
    host, _, port = target.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise LinkError(f"{target}: write it as HOST:PORT")
    return host.removeprefix("[").removesuffix("]"), int(port)


_SERIAL: dict[str, Reader] = {
    "baud": whole,
    "exclusive": switch,
    "parity": str,
    "stopbits": float,
    "rtscts": switch,
    "queue_bytes": whole,
}

MEDIA = {
    "uart": Medium(_SERIAL | {"echo": switch}, _uart),
    "rs485": Medium(
        _SERIAL | {"nodes": wholes, "answer_ms": float, "turnaround_ms": float},
        _rs485,
        {"nodes": "add ?nodes=A,B, the addresses that are polled"},
    ),
    "can": Medium(
        {
            "interface": str,
            "node": whole,
            "subject": whole,
            "fd": switch,
            "bitrate": whole,
            "data_bitrate": whole,
            "bitrate_switch": switch,
            "mixed": str,
            "age_ms": float,
            "queue_bytes": whole,
        },
        _can,
        {"node": "add ?node=N, 1 to 127, that nobody else has there"},
        others=True,
    ),
    "multicast": Medium(
        {"interface": str, "hops": whole, "datagram_bytes": whole, "queue_bytes": whole},
        _multicast,
        {"interface": "add ?interface=NAME or its address"},
    ),
    "i2c": Medium(
        {"targets": wholes, "poll_ms": float, "alert": str, "queue_bytes": whole},
        _i2c,
        {"targets": "add ?targets=0x42,0x43"},
    ),
    "frames": Medium({"mode": str, "framing": str, "queue_bytes": whole}, _frames),
}
