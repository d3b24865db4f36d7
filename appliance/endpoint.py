"""Endpoints: one word that names a bus, a serial port or a CAN channel, and a station on it.

tcp://HOST:PORT, ipc:///PATH, ws://..., ...     a bus; dialled, unless it is to listen
uart:/dev/ttyUSB0?baud=115200                   a serial port (also uart:socket://HOST:PORT)
can:can0?node=42&interface=socketcan&fd=true    a CAN channel; other keys go to python-can
"""

import argparse
from collections.abc import Callable
from difflib import get_close_matches
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from appliance.words import argument
from bus.errors import LinkError
from bus.hub import Link
from bus.links import SCHEMES, make_link

_STREAMS = ("tcp", "ipc")
_RETRY_MAX_S = 1.0  # somebody waits at the keyboard


def _switch(text: str) -> bool:
    words = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    if text.lower() not in words:
        raise ValueError
    return words[text.lower()]


def _whole(text: str) -> int:
    return int(text, 0)


_Reader = Callable[[str], Any]
_KIND = {_switch: "true or false", _whole: "a whole number", float: "a number", str: "text"}
_UART: dict[str, _Reader] = {
    "baud": _whole,
    "exclusive": _switch,
    "parity": str,
    "stopbits": float,
    "rtscts": _switch,
    "queue_bytes": _whole,
}
_CAN: dict[str, _Reader] = {
    "interface": str,
    "node": _whole,
    "subject": _whole,
    "fd": _switch,
    "bitrate": _whole,
    "data_bitrate": _whole,
    "bitrate_switch": _switch,
    "queue_bytes": _whole,
}


class Endpoint(NamedTuple):
    """A parsed word: `kind` is "bus", "uart" or "can"; `target` a URL, a port or a channel."""

    word: str
    kind: str
    target: str
    settings: dict[str, Any]

    @property
    def untold(self) -> bool:
        """Whether the transport does not say what has left: NNG's do not."""
        return self.kind == "bus" and self.target.partition("://")[0] not in _STREAMS

    def link(self, listen: bool = False, tls: dict[str, str] | None = None) -> Link:
        """The link, not yet open. Raises `LinkError` for settings that can never work."""
        if self.kind == "bus":
            return _bus_link(self, listen, tls or {})
        if listen or tls:
            raise LinkError(f"{self.word}: --listen and --tls-... are for a bus")
        return _uart_link(self) if self.kind == "uart" else _can_link(self)


def parse_endpoint(word: str) -> Endpoint:
    """The endpoint that `word` names. Raises `LinkError` that says which part of it is wrong."""
    scheme, _, rest = word.partition(":")
    if scheme == "uart":
        port, settings, _ = _split(word, rest, _UART, others=False)
        return Endpoint(word, "uart", port, settings)
    if scheme == "can":
        channel, settings, options = _split(word, rest, _CAN, others=True)
        if "node" not in settings:
            raise LinkError(f"{word}: node is missing: add ?node=N, 1 to 127, that nobody else has there")
        return Endpoint(word, "can", channel, settings | {"options": options})
    if word.partition("://")[0] in SCHEMES and "://" in word:
        return Endpoint(word, "bus", word, {})
    schemes = ", ".join(f"{known}://" for known in SCHEMES)
    raise LinkError(f"{word!r} is no endpoint: write a bus ({schemes}), uart:PORT or can:CHANNEL?node=N")


def _split(
    word: str, rest: str, readers: dict[str, _Reader], others: bool
) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """Target, settings, and options for others, of `TARGET?KEY=VALUE&...`."""
    target, _, query = rest.partition("?")
    if not target:
        raise LinkError(f"{word}: what to open is missing after the colon")
    settings: dict[str, Any] = {}
    options: dict[str, Any] = {}
    for key, value in _pairs(word, query):
        if key in settings or key in options:
            raise LinkError(f"{word}: {key} is given twice")
        if key in readers:
            settings[key] = _read(word, key, value, readers[key])
        else:
            _refuse_misspelt(word, key, readers, others)
            options[key] = _guess(value)
    return target, settings, options


def _pairs(word: str, query: str) -> list[tuple[str, str]]:
    try:
        return parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query))
    except ValueError as error:
        raise LinkError(f"{word}: after the question mark write KEY=VALUE&KEY=VALUE") from error


def _read(word: str, key: str, value: str, reader: _Reader) -> Any:
    try:
        if not value:
            raise ValueError
        return reader(value)
    except ValueError as error:
        raise LinkError(f"{word}: {key} must be {_KIND[reader]}, not {value!r}") from error


def _refuse_misspelt(word: str, key: str, readers: dict[str, _Reader], others: bool) -> None:
    """python-can takes and ignores what it does not know, so what nearly is one of ours is an error."""
    near = get_close_matches(key, readers, 1, 0.75)
    if near or not others:
        hint = f"did you mean {near[0]}?" if near else f"use {', '.join(readers)}"
        raise LinkError(f"{word}: unknown setting {key}: {hint}")


def _guess(value: str) -> Any:
    """A value for a driver whose keys we do not know: a number or a switch, if it is written like one."""
    for reader in (_whole, float):
        try:
            return reader(value)
        except ValueError:
            continue
    return {"true": True, "false": False}.get(value.lower(), value)


def _bus_link(endpoint: Endpoint, listen: bool, tls: dict[str, str]) -> Link:
    options: dict[str, Any] = {"retry_max_s": _RETRY_MAX_S}
    if tls:
        if not endpoint.target.startswith(("wss://", "tls+tcp://")):
            raise LinkError(f"{endpoint.word}: --tls-... are for wss:// and tls+tcp://")
        from bus.nng_socket import Tls

        options["tls"] = Tls(tls.get("ca_file", ""), tls.get("cert_file", ""), tls.get("key_file", ""))
    return make_link(endpoint.target, "listen" if listen else "dial", **options)


def _uart_link(endpoint: Endpoint) -> Link:
    from bridges.uart import UartLink

    return UartLink(endpoint.target, retry_max_s=_RETRY_MAX_S, **endpoint.settings)


def _can_link(endpoint: Endpoint) -> Link:
    from bridges.can import CanLink

    settings = {"interface": "socketcan"} | endpoint.settings
    return CanLink(channel=endpoint.target, retry_max_s=_RETRY_MAX_S, **settings)


def arguments(parser: argparse.ArgumentParser) -> None:
    """What every command with an endpoint takes. `options.fail(text)` is the way out for wrong use."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = "endpoints:\n" + (__doc__ or "").partition("\n\n")[2].rstrip()
    parser.set_defaults(fail=parser.error)
    parser.add_argument(
        "endpoint", type=argument(parse_endpoint), metavar="ENDPOINT", help="a bus, uart:... or can:..."
    )
    parser.add_argument("--listen", action="store_true", help="listen on the bus URL instead of dialling it")
    for name, text in (
        ("ca", "trust this authority"),
        ("cert", "our certificate"),
        ("key", "our key"),
    ):
        parser.add_argument(f"--tls-{name}", metavar="FILE", help=f"{text} (wss://, tls+tcp://)")


def link_of(options: argparse.Namespace) -> Link:
    """The link that the arguments ask for; wrong use ends the program with status 2."""
    files = {"ca_file": options.tls_ca, "cert_file": options.tls_cert, "key_file": options.tls_key}
    tls = {key: value for key, value in files.items() if value}
    try:
        made: Link = options.endpoint.link(options.listen, tls)
    except LinkError as error:
        options.fail(str(error))
    return made
