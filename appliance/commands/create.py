"""`buscoupler create FILE`: write a topology of one gateway, from answers, flags and devices plugged in."""

import argparse
import os
import socket
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields as dataclass_fields
from dataclasses import replace
from typing import Any

from appliance.commandline.arguments import argument
from appliance.machine.plugged import found, i2c_buses
from appliance.probe.endpoint import parse_endpoint
from appliance.probe.listening import listened
from bridges.media.medium import Medium
from bridges.protocols import PROTOCOLS
from bridges.protocols.protocol import Protocol
from bus.errors import BusError, why_of
from bus.key_types import NAME, Path, check_name
from bus.machine.files import whole
from bus.schema import settings, unwrap
from bus.urls import check_listen
from topologies.checks.checker import check
from topologies.findings import InvalidTopology
from topologies.loading.loader import loads
from topologies.writing import schema
from topologies.writing.files import Joined, New, said, written

LISTEN = "tcp://127.0.0.1:5555"
LISTEN_S = 2.5  # at each rate
_PROPOSED: Mapping[str, Mapping[str, Any]] = {"nmea": {"values": True}}
"""Settings that are proposed for a device that was heard, beside those that its protocol needs."""
_THERE = "{} is there already: --force overwrites it"
Ask = Callable[[str, str], str]
"""A function that asks a question with a default, and returns the answer."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="the file to write; - is standard output")
    parser.add_argument(
        "--name", type=argument(_name), metavar="NAME",
        help="the name of the system; that of the file by default",
    )  # fmt: skip
    parser.add_argument(
        "--gateway", type=argument(_name), metavar="NAME",
        help="the name of this machine; its host name by default",
    )  # fmt: skip
    parser.add_argument("--address", metavar="HOST", help="its address for other gateways (127.0.0.1)")
    parser.add_argument(
        "--listen", type=argument(_url), metavar="URL", help=f"where programs join the bus ({LISTEN})"
    )
    parser.add_argument(
        "--join", action="append", type=argument(_side), metavar="ENDPOINT",
        help="a medium to join, as `send` and `recv` write it (repeatable); what is plugged in by default",
    )  # fmt: skip
    parser.add_argument(
        "--listen-to", action="append", metavar="DEVICE", default=[],
        help="listen to a serial device or CAN interface for some seconds, and join it with the rate and the "
        "protocol that it seems to have (repeatable); nothing is sent",
    )  # fmt: skip
    parser.add_argument("--nothing", action="store_true", help="join no medium, whatever is plugged in")
    parser.add_argument("--yes", action="store_true", help="ask nothing, as if the input were no terminal")
    parser.add_argument("--force", action="store_true", help="overwrite the file")


def _name(word: str) -> str:
    check_name(word)
    return word


def _url(word: str) -> str:
    try:
        check_listen(word)
    except ValueError as error:
        raise ValueError(f"{word}: {error}") from None
    return word


def _side(word: str) -> Joined:
    endpoint = parse_endpoint(word)
    if endpoint.medium is None:
        raise BusError(f"{word} is a bus: write a medium")
    medium, protocol = _as_in_files(endpoint.medium), endpoint.protocol
    return Joined(medium) if protocol is None else Joined(medium, protocol.key, settings=_settings(protocol))


def _settings(protocol: Protocol) -> dict[str, Any]:
    """Return what is said of a protocol. Paths are from here: those in a file are from its directory."""
    known, (_, of_path) = settings(type(protocol)), unwrap(Path)
    return {
        key: os.path.abspath(value)
        if any(one in of_path for one in unwrap(known[key].annotation)[1])
        else value
        for key, value in said(protocol).items()
    }


def _medium(word: str) -> Medium:
    return _side(word).medium


def _as_in_files(medium: Medium) -> Medium:
    """Return a medium with the defaults of topology files, where those of the command line differ."""
    others = {name: value for word in medium.words for name, value in word.defaults.items()}
    fields = {f.name: (f.default, getattr(medium, f.name)) for f in dataclass_fields(medium)}
    back: dict[str, Any] = {name: fields[name][0] for name in others if fields[name][1] == others[name]}
    return replace(medium, **back)


def run(options: argparse.Namespace) -> int:
    if options.file != "-" and not options.force and os.path.lexists(options.file):
        raise BusError(_THERE.format(options.file))
    asks = sys.stdin.isatty() and not options.yes
    new = _answered(options, _ask if asks else _default)
    text = _checked(written(new), options.file)
    if options.file == "-":
        sys.stdout.write(text)
        return 0
    _write(options.file, text, options.force)
    print(
        f"{options.file}: a bus at {new.listen} and {_count(new.media)}; run `buscoupler run {options.file}`"
    )
    return 0


def _answered(options: argparse.Namespace, ask: Ask) -> New:
    host = socket.gethostname().partition(".")[0]
    name = os.path.basename(options.file).partition(".")[0] if options.file != "-" else "plant"
    return New(
        options.name or ask("name of the system", _named(name, "plant")),
        options.gateway or ask("name of this gateway", _named(host, "gw")),
        options.address or ask("its address for other gateways", "127.0.0.1"),
        options.listen or ask("where programs join the bus", LISTEN),
        [*_listened(options.listen_to), *_joined(options, ask)],
        str(schema.FILE),
        [f"/dev/i2c-{bus} is there: add `- i2c: {{bus: {bus}, targets: [...]}}`" for bus in i2c_buses()],
    )


def _listened(devices: Iterable[str]) -> Iterator[Joined]:
    """Yield what is found at devices that are only listened to. Raises `BusError` for one that cannot be."""
    for device in devices:
        heard = listened(device, LISTEN_S, lambda text: print(text, file=sys.stderr))
        print(heard.words, file=sys.stderr)
        protocol = heard.protocol if _stands_alone(heard.protocol) else ""
        yield Joined(heard.medium, protocol, heard.words, {**_PROPOSED.get(protocol, {}), **heard.settings})


def _stands_alone(protocol: str) -> bool:
    """Tell whether a protocol is installed, and needs no settings."""
    kind = PROTOCOLS.find(protocol) if protocol else None
    return kind is not None and not any(one.required for one in settings(kind).values())


def _joined(options: argparse.Namespace, ask: Ask) -> list[Joined]:
    """Return the media that are named, or else those that are plugged in."""
    if options.nothing or (options.listen_to and not options.join):
        return []
    return options.join or [Joined(medium) for medium in _plugged(ask)]


def _plugged(ask: Ask) -> list[Medium]:
    return [_medium(word) for word in found() if ask(f"join {word}", "yes").lower() in ("y", "yes")]


def _named(text: str, otherwise: str) -> str:
    return text if NAME.fullmatch(text) else otherwise


def _ask(question: str, default: str) -> str:
    print(f"{question} [{default}]: ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip() or default


def _default(question: str, default: str) -> str:
    return default


def _checked(text: str, file: str) -> str:
    """Return the text of a topology, once it is checked. Raises `InvalidTopology` if an answer was wrong."""
    errors = [finding for finding in check(loads(text, file)) if finding.level == "error"]
    if errors:
        raise InvalidTopology(errors)
    return text


def _write(file: str, text: str, force: bool) -> None:
    if not force and os.path.lexists(file):  # since the first question
        raise BusError(_THERE.format(file))
    try:
        with whole(file) as target:
            target.write(text.encode())
    except OSError as error:
        raise BusError(f"{file}: cannot write the topology: {why_of(error)}") from error


def _count(media: Iterable[Joined]) -> str:
    labels = [one.medium.label() for one in media]
    none = "no bridge: no medium was found (--join names one)"
    return f"a bridge to {', '.join(labels)}" if labels else none
