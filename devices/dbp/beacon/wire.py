"""The datagrams of beacons, each a line of text, in two forms (docs/wire/beacon.md). Pure."""

import re
from typing import Final, Literal, NamedTuple, get_args

from bus.urls import HOSTED

Kind = Literal["catalog", "bus", "trunk", "broker"]
KINDS: Final[dict[bytes, Kind]] = {kind.encode(): kind for kind in get_args(Kind)}

DATAGRAM_BYTES: Final = 256
NAME_BYTES: Final = 200
_WORD: Final = b"SHALOM"
_PORT: Final = re.compile(rb"[1-9][0-9]{0,4}")
_TRANSPORTS: Final = {transport.encode(): transport for transport in HOSTED}


class Beacon(NamedTuple):
    """A beacon, without its host, which is the address that the datagram comes from.

    `transport` is the scheme of the URL. `name` is "" in the first form, which only catalogs have.
    """

    kind: Kind
    port: int
    transport: str = "tcp"
    name: str = ""

    def url(self, host: str) -> str:
        """Return the announced URL for a beacon from `host`, an IPv4 address."""
        return f"{self.transport}://{host}:{self.port}"


REFUSED: Final = {
    "size": "more than 256 bytes",
    "word": "it does not begin with SHALOM",
    "port": "no number from 1 to 65535",
    "form": "neither two words nor five",
    "kind": "no kind that is announced",
    "transport": "no transport that has hosts and ports",
    "name": "longer than 200 bytes, not UTF-8 or not printable",
}
"""The reasons for which `parse` refuses a datagram, with their meanings."""


def pack(beacon: Beacon) -> bytes:
    """Return the datagram of a beacon, in the first form if it has no name.

    Raises ValueError for a beacon that `parse` would refuse.
    """
    words = [_WORD.decode(), str(beacon.port)]
    words += [beacon.kind, beacon.transport, beacon.name] if beacon.name else []
    data = " ".join(words).encode()
    if parse(data) != beacon:
        raise ValueError(f"no datagram can carry this beacon: {beacon}")
    return data


def parse(data: bytes) -> Beacon | str:
    """Return the beacon in a datagram, or the reason of its refusal."""
    if len(data) > DATAGRAM_BYTES:
        return "size"
    word, *rest = data.split(b" ", 4)
    if word != _WORD or not rest:
        return "word"
    port = int(rest[0]) if _PORT.fullmatch(rest[0]) else 0
    if not 0 < port < 1 << 16:
        return "port"
    if len(rest) == 1:
        return Beacon("catalog", port)
    return _second(port, *rest[1:]) if len(rest) == 4 else "form"


def _second(port: int, kind: bytes, transport: bytes, name: bytes) -> Beacon | str:
    if kind not in KINDS:
        return "kind"
    if transport not in _TRANSPORTS:
        return "transport"
    text = _text(name)
    return Beacon(KINDS[kind], port, _TRANSPORTS[transport], text) if text else "name"


def _text(name: bytes) -> str:
    try:
        text = name.decode()
    except UnicodeDecodeError:
        return ""
    return text if text.isprintable() and len(name) <= NAME_BYTES else ""
