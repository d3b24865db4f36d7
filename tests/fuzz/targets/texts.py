"""Targets that read text: of files, of the command line, of the local socket."""

from argparse import ArgumentTypeError
from collections.abc import Callable
from typing import Final

from appliance.commandline import arguments
from appliance.probe import words
from appliance.probe.endpoint import parse_endpoint
from appliance.reload import outcome
from bus.errors import BusError, TokenError
from bus.names import names_from
from bus.tmq.address import written as written_address
from bus.urls import split_url
from bus.wire.notation import name_of, names_in, text_of
from bus.wire.websocket.origins import check_origin
from devices.syndication.query.errors import QueryError
from devices.syndication.query.parse import subscription
from pipeline.jobs.ranges import whole
from tests.fuzz.target import Pieces, Target
from tests.helpers import ROOT
from topologies.checks.checker import check
from topologies.findings import InvalidTopology
from topologies.loading.loader import loads


def _text(pieces: Pieces) -> str:
    """Return an input as the command line gives it: what is not UTF-8 is there too."""
    return b"".join(pieces).decode(errors="surrogateescape")


def _pattern(pieces: Pieces) -> object:
    """Read a pattern, and write it again."""
    names = names_in(_text(pieces))
    assert names_in(text_of(names)) is not None
    return names, name_of(_text(pieces))


def _word(pieces: Pieces) -> object:
    """Read a word of the command line in each way in which a command may."""
    readers: tuple[Callable[[str], object], ...] = (
        arguments.hex_bytes,
        words.type_of,
        arguments.above_zero,
        arguments.whole_above_zero,
        written_address,
        whole(1),
    )
    return [_tried(reader, _text(pieces)) for reader in readers]


def _tried(reader: Callable[[str], object], word: str) -> object:
    try:
        return reader(word)
    except (ArgumentTypeError, BusError):
        return None


def _url(pieces: Pieces) -> object:
    text = _text(pieces)
    check_origin(text)
    return split_url.__wrapped__(text)


def _names(pieces: Pieces) -> object:
    return names_from(_text(pieces).splitlines())


def _topology(pieces: Pieces) -> object:
    """Load a topology and check it. Each finding is one printable line."""
    try:
        topology = loads(b"".join(pieces).decode(errors="replace"))
    except InvalidTopology as error:
        findings = error.findings
    else:
        findings = list(check(topology))
    shown = [str(finding) for finding in findings]
    assert all(map(str.isprintable, shown)), shown
    return shown


def _topology_seeds() -> list[bytes]:
    names = ("cold-chain", "trunk", "lan", "slow-line", "nodes")
    seeds = [(ROOT / f"topologies/{name}.yaml").read_bytes() for name in names]
    odd = b'name: "\\x1b[2J"\ngateways: {a: {address: 10.0.0.1, node: 1:59}}\nbuses: {b: {"\\x07": 0x7f}}\n'
    return [*seeds, odd, b"a: &a [1, 2]\nb: *a\n<<: {c: 1}\n", b"name: !!binary aGk=\nbrokers: {on: 1e999}\n"]


def _topology_grown(n: int) -> list[bytes]:
    """Return long numbers, many keys, many buses, and many references."""
    head = b"name: x\ngateways: {a: {address: 10.0.0.1}}\nbuses:\n"
    bus = b"  b%d: {on: a, listen: ['tcp://127.0.0.1:%d']}\n"
    return [
        head + b"  b: {on: a, queue_bytes: 1" + b":59" * n + b"}\n",
        head + b"  b: {on: a, queue_bytes: 0x" + b"f" * n + b"}\n",
        head + b"".join(b"  b%d: 1\n" % number for number in range(n // 10)),
        head + b"".join(bus % (number, 10_000 + number) for number in range(n // 40)),
    ]


def _query(pieces: Pieces) -> object:
    query, key = subscription(_text(pieces))
    assert subscription(query.text)[0].text == query.text
    return query.text, key


def _query_seeds() -> list[bytes]:
    texts = (
        "select distinct a where not (has b or ['c', 1, true] in d) and e != 'f' and g like 'h%'",
        "a = 1.5e3",
    )
    return [text.encode() for text in texts]


def _reload(pieces: Pieces) -> object:
    line = b"".join(pieces)
    found: list[object] = []
    for read in (outcome.unpack_request, outcome.unpack_outcome):
        try:
            found.append(read(line))
        except ValueError:
            found.append(None)
    return found


def _reload_seeds() -> list[bytes]:
    told = outcome.Outcome("plant", "gw-a", ("b",), "plant.yaml", ("bus b: new",), ("x",))
    return [outcome.pack(outcome.Request("plant.yaml", "gw-a")), outcome.pack(told)]


_ENDPOINTS: Final = (
    b"tcp://127.0.0.1:5555",
    b"ws://[::1]:80/plant",
    b"uart:/dev/ttyUSB0,baud=921600,protocol=cobs",
    b"can:can0,fd=true,bitrate=500000",
    b"multicast:239.1.2.3:5000,interface=eth0",
    b"i2c:1,targets=0x42+0x43",
    b"tcp:127.0.0.1:99",
)

TARGETS: Final = (
    Target(
        "pattern",
        "patterns and names in one word",
        _pattern,
        lambda: [b"fridge/temp/7", b'0x1F/"a/b"/12', b"/", b'"7"', "é/ü".encode(), b"9" * 30],
        (TokenError,),
        whole=True,
    ),
    Target(
        "word",
        "words of the command line",
        _word,
        lambda: [b"00ff", b"pub+cache", b"255", b"0.5", b"1e9", b"tcp://h:9942", b"10.0.0.1:80"],
        whole=True,
    ),
    Target(
        "endpoint",
        "endpoints on the command line",
        lambda p: parse_endpoint(_text(p)).word,
        lambda: _ENDPOINTS,
        (BusError,),
        whole=True,
    ),
    Target(
        "url",
        "addresses and origins",
        _url,
        lambda: [b"tcp://127.0.0.1:5555", b"wss://gw-a.example:443", b"https://[::1]:8080"],
        (ValueError,),
        whole=True,
    ),
    Target(
        "names",
        "files of names",
        _names,
        lambda: [b'fridge # cold\ntemp/7\n\n# no\n"a b"\n'],
        (TokenError,),
        whole=True,
    ),
    Target(
        "topology",
        "topology files",
        _topology,
        _topology_seeds,
        whole=True,
        grown=_topology_grown,
        inputs=500,
        size=256,
        why="1 ms an input, in PyYAML, which compares at most 1,024 characters with what is before them",
    ),
    Target(
        "query",
        "queries of the syndication broker",
        _query,
        _query_seeds,
        (QueryError,),
        whole=True,
        grown=lambda n: [b"a = 1" + b" and a = 1" * (n // 40), b"(" * (n // 8) + b"a = 1" + b")" * (n // 8)],
    ),
    Target("reload", "requests at the local socket, and answers", _reload, _reload_seeds, whole=True),
)
