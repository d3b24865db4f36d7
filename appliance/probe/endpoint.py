"""Endpoints: one word that names a bus or a medium, and the link to it.

tcp://HOST:PORT, ipc:///PATH, ws://..., ...     a bus; dialled, unless it is to listen
uart:/dev/ttyUSB0?baud=115200                   a serial port (also uart:socket://HOST:PORT)
rs485:/dev/ttyUSB0?nodes=1,2                    a shared pair whose nodes are polled
can:can0?node=42&interface=socketcan&fd=true    a CAN channel; other keys go to python-can
multicast:239.9.42.1:9943?interface=eth0        a UDP multicast group
i2c:1?targets=0x42,0x43                         targets on /dev/i2c-1
frames:HOST:PORT?mode=dial                      a TCP stream of frames, without SP
"""

import argparse
from difflib import get_close_matches
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from appliance.probe.media import KINDS, MEDIA, RETRY_MAX_S, Medium, Reader, whole
from appliance.probe.words import argument
from bus.errors import LinkError
from bus.hub import Link
from bus.transports.links import SCHEMES, make_link

_STREAMS = ("tcp", "ipc")


class Endpoint(NamedTuple):
    """A parsed word: `kind` is "bus" or a medium; `target` a URL, a port, a channel, an address."""

    word: str
    kind: str
    target: str
    settings: dict[str, Any]

    @property
    def uncounted(self) -> bool:
        """Return whether the transport does not count the messages it has written: NNG's do not."""
        return self.kind == "bus" and self.target.partition("://")[0] not in _STREAMS

    def link(self, listen: bool = False, tls: dict[str, str] | None = None) -> Link:
        """The link, not yet open. Raises `LinkError` for settings that can never work."""
        if self.kind == "bus":
            return _bus_link(self, listen, tls or {})
        if listen or tls:
            raise LinkError(f"{self.word}: --listen and --tls-... are for a bus")
        return MEDIA[self.kind].link(self.target, self.settings)


def parse_endpoint(word: str) -> Endpoint:
    """The endpoint that `word` names. Raises `LinkError` that says which part of it is wrong."""
    kind, _, rest = word.partition(":")
    if kind in MEDIA:
        return _medium(word, kind, rest)
    if word.partition("://")[0] in SCHEMES and "://" in word:
        return Endpoint(word, "bus", word, {})
    schemes = ", ".join(f"{known}://" for known in SCHEMES)
    media = ", ".join(f"{known}:" for known in MEDIA)
    raise LinkError(f"{word!r} is no endpoint: write a bus ({schemes}) or a medium ({media})")


def _medium(word: str, kind: str, rest: str) -> Endpoint:
    medium = MEDIA[kind]
    target, settings, options = _split(word, rest, medium)
    for key, hint in medium.needed.items():
        if key not in settings:
            raise LinkError(f"{word}: {key} is missing: {hint}")
    if medium.others:
        settings["options"] = options
    return Endpoint(word, kind, target, settings)


def _split(word: str, rest: str, medium: Medium) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """Target, settings, and options for others, of `TARGET?KEY=VALUE&...`."""
    target, _, query = rest.partition("?")
    if not target:
        raise LinkError(f"{word}: what to open is missing after the colon")
    settings: dict[str, Any] = {}
    options: dict[str, Any] = {}
    for key, value in _pairs(word, query):
        if key in settings or key in options:
            raise LinkError(f"{word}: {key} is given twice")
        if key in medium.settings:
            settings[key] = _read(word, key, value, medium.settings[key])
        else:
            _refuse_misspelt(word, key, medium)
            options[key] = _guess(value)
    return target, settings, options


def _pairs(word: str, query: str) -> list[tuple[str, str]]:
    try:
        return parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query))
    except ValueError as error:
        raise LinkError(f"{word}: after the question mark write KEY=VALUE&KEY=VALUE") from error


def _read(word: str, key: str, value: str, reader: Reader) -> Any:
    try:
        if not value:
            raise ValueError
        return reader(value)
    except ValueError as error:
        raise LinkError(f"{word}: {key} must be {KINDS[reader]}, not {value!r}") from error


def _refuse_misspelt(word: str, key: str, medium: Medium) -> None:
    """python-can takes and ignores what it does not know, so what nearly is one of ours is an error."""
    near = get_close_matches(key, medium.settings, 1, 0.75)
    if near or not medium.others:
        hint = f"did you mean {near[0]}?" if near else f"use {', '.join(medium.settings)}"
        raise LinkError(f"{word}: unknown setting {key}: {hint}")


def _guess(value: str) -> Any:
    """A value for a driver whose keys we do not know: a number or a switch, if it is written like one."""
    for reader in (whole, float):
        try:
            return reader(value)
        except ValueError:
            continue
    return {"true": True, "false": False}.get(value.lower(), value)


def _bus_link(endpoint: Endpoint, listen: bool, tls: dict[str, str]) -> Link:
    options: dict[str, Any] = {"retry_max_s": RETRY_MAX_S}
    if tls:
        if not endpoint.target.startswith(("wss://", "tls+tcp://")):
            raise LinkError(f"{endpoint.word}: --tls-... are for wss:// and tls+tcp://")
        from bus.transports.nng_socket import Tls

        options["tls"] = Tls(tls.get("ca_file", ""), tls.get("cert_file", ""), tls.get("key_file", ""))
    return make_link(endpoint.target, "listen" if listen else "dial", **options)


def arguments(parser: argparse.ArgumentParser) -> None:
    """What every command with an endpoint takes. `options.fail(text)` is the way out for wrong use."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = "endpoints:\n" + (__doc__ or "").partition("\n\n")[2].rstrip()
    parser.set_defaults(fail=parser.error)
    parser.add_argument(
        "endpoint", type=argument(parse_endpoint), metavar="ENDPOINT", help="a bus, uart:..., can:..., ..."
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
