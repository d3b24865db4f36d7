"""Targets of the protocols of bytes that devices speak: what they say, and what is written to them."""

from collections.abc import Callable, Sequence
from typing import Final

from bridges.media.byte_echo import ByteEcho
from bridges.protocols.bytes.protocol import Bytes
from bridges.protocols.jsonl.protocol import JsonLines
from bridges.protocols.lines.protocol import Lines
from bridges.protocols.nmea.protocol import Nmea
from bridges.protocols.p1.protocol import P1
from bridges.protocols.protocol import Protocol
from bridges.protocols.slip.protocol import Slip
from bridges.protocols.vedirect.protocol import VeDirect
from bridges.protocols.xbee.api import framed
from bridges.protocols.xbee.protocol import Xbee
from bus.ledger import Stats
from bus.wire.frame import DATA_BYTES_MAX, pack, unpack
from bus.wire.notation import pattern_of
from tests.bridges.protocols.blocks_support import CHARGER, MONITOR, block, telegram, unsummed
from tests.bridges.protocols.spoken_support import translator
from tests.fuzz.target import Pieces, Target, recorded, records

_MATCH: Final = {r"(?P<kind>[A-Z]+)=(?P<data>.*)": ("t", "{kind}"), r"(a|b(?P<x>\w*))*c": ("t", "x-{x}")}
LINES: Final = Lines(
    match=_MATCH, unmatched=("other",), delimiter="\r\n", encoding="utf-8", send={"o": "{1} {data}\r\n"}
)
PLAIN: Final = Lines(send=("o",))
NMEA: Final = Nmea(send=("o",), checksum="optional", longest_bytes=100)
NMEA_VALUES: Final = Nmea(root=("o",), values=True, checksum="optional", form="json")
VEDIRECT: Final = VeDirect(root=("o",), longest_bytes=300)
P1_CHECKED: Final = P1(root=("o",), longest_bytes=800)
P1_OPEN: Final = P1(root=("o",), checksum="optional", form="json")
MEMBERS: Final = JsonLines(members={"a": ("a",), "b.c": ("b",)}, send={"o": "x.y"}, longest_bytes=4096)
SPLIT: Final = JsonLines(split=True, send=("o",))
SLIP: Final = Slip(send=("o",))
BYTES: Final = Bytes(send=("o",), chunk_bytes=16)
XBEE: Final = Xbee(root=("o",), nodes={"1": "0013A20041AE7D2C"}, send=("1", "all"))
XBEE_ESCAPED: Final = Xbee(root=("o",), escaped=True)

_GGA: Final = b"$GPGGA,092750.000,5321.6802,N,00630.3372,W,1,8,1.03,61.7,M,55.2,M,,*76\r\n"
_CONTENTS: Final = (
    b"\x90\x00\x13\xa2\x00\x7d\x11\x7e\x13\xff\xfe\x01\x7e21.5",
    b"\x8b\x01\xff\xfe\x00\x00\x00",
    b"\x8a\x06",
    b"\x88\x01NP\x00",
)
SEEDS: Final = {
    "lines": (b"T=1\r\nabac\r\n\xc2\xb0\r\n", b"abababababc\r\nT=" + b"x" * 3000 + b"\r\nT=2\r\n"),
    "nmea": (_GGA, _GGA[:30] + _GGA, b"\\s:1*00\\!AIVDM,1,1,,B,1*5C\r\n", b"$PUBX,00*33\n$GPGLL,1\n"),
    "nmea-values": (_GGA, b"$GPRMC,,A,5321.6,S,00630.3,E,0.06,31.66,,,,A\n$WIMWV,45,R,,N,V\n"),
    "vedirect": (
        block(CHARGER) + b":7F0ED0071004F\n" + block(MONITOR) + block({"V": "1"}),
        block({"V": "1"}) * 3 + b":A0002000148\n" + block({"V": ":12:\t"}),
    ),
    "p1": (telegram() * 2, telegram(["1-0:1.8.0*255(1.50*Wh)", "0-1:24.2.1(101209112500W)(1*m3)"]) + b"\xff"),
    "p1-open": (unsummed() + b"\r\n", b"/ABC5x\n1.8.0(1*kWh)\n(2)\n!\n", telegram(["1-0:99.97.0()"])),
    "jsonl": (b'{"a":1.50,"b":{"c":[1,"\\u00b0"]}}\n', b'{"a":NaN}\n[[[[\n', b'{"a":1,"a":2}\n7\n"x\\"y"\n'),
    "slip": (b"\xc0a\xdb\xdcb\xc0\xc0\xdb\xdd\xc0", b"\xdbx\xc0\xc0"),
    "bytes": (b"0123456789abcdefghij", b"\x00\xff"),
    "xbee": tuple(framed(one, False) for one in _CONTENTS),
    "xbee-escaped": tuple(framed(one, True) for one in _CONTENTS),
}


def _heard(record: Protocol) -> Callable[[Pieces], object]:
    def feed(pieces: Pieces) -> object:
        made = translator(record)
        frames = [unpack(one) for piece in pieces for one in made.receive([piece], 0.0)]
        frames += map(unpack, made.end(0.0))
        numbered = isinstance(record, Bytes)  # its stream has another number each time
        found = [(one.tokens[:1] + one.tokens[2:] if numbered else one.tokens, one.data) for one in frames]
        assert all(len(data) <= DATA_BYTES_MAX for _, data in found)
        return found, made.wire.stats.rejected, made.noise

    return feed


def _written(record: Protocol) -> Callable[[Pieces], object]:
    def feed(pieces: Pieces) -> object:
        made, written = translator(record), list[object]()
        for data in records(b"".join(pieces)):
            for pattern in ("o", "o/1", "o/1/2", "p"):
                sent = made.send(pack(1, pattern_of(pattern), data), 0.0)
                assert bool(sent.why) != bool(sent.items)
                written.append((b"".join(sent.items), sent.why))
        return written

    return feed


def _echo(pieces: Pieces) -> object:
    """Take out the echo of two runs. Nothing is given twice, and nothing of what is ours is invented."""
    echo = ByteEcho(Stats())
    echo.sent(b"READ 100\r\n", 1.0)
    echo.sent(b"R", 1.0)
    given = [echo.heard(piece, 0.0) for piece in pieces]
    given.append(echo.heard(b"", 2.0))
    assert sum(map(len, given)) <= sum(map(len, pieces))
    return None  # how much of a damaged echo is seen at once depends on the pieces


def _seeds(name: str) -> Callable[[], Sequence[bytes]]:
    return lambda: SEEDS[name]


def _data(name: str) -> Callable[[], Sequence[bytes]]:
    return lambda: [recorded(*SEEDS[name])]


_GROWN: Final[dict[str, Callable[[int], Sequence[bytes]]]] = {
    "lines": lambda n: [b"a" * n + b"!\r\n"],
    "nmea": lambda n: [b"$GPGGA," * n + b"\n"],
    "vedirect": lambda n: [b"\r\nV\t1:" * n + b"\n", b":" * n, b"\nChecksum\t" * n, b":A" * n + b"\n"],
    "p1": lambda n: [b"/ABC5" * n, b"/ABC5\n" * n + b"\n!\n", b"/ABC5\n1-0:1.8.0" + b"(1)" * n + b"\n!\n"],
    "p1-open": lambda n: [b"/ABC5\n" + b"1.8.0(1)\n" * n + b"!\n", b"\n!" * n],
    "jsonl": lambda n: [b'"' + b'\\"[' * n + b"\n"],
    "slip": lambda n: [b"\xdb\xdc" * n + b"\xc0"],
    "xbee": lambda n: [b"\x7e\x01\xff" * n],
    "xbee-escaped": lambda n: [b"\x7e\x01\xff\x7d" * n],
}


def _target(name: str, record: Protocol, parses: str) -> Target:
    return Target(name, parses, _heard(record), _seeds(name), grown=_GROWN.get(name, lambda n: ()))


_OUT: Final = {"lines": LINES, "nmea": NMEA, "jsonl": MEMBERS, "slip": SLIP, "bytes": BYTES, "xbee": XBEE}
TARGETS: Final = [
    _target("lines", LINES, "lines of text that match"),
    _target("nmea", NMEA, "sentences of NMEA 0183"),
    _target("nmea-values", NMEA_VALUES, "values in sentences of NMEA 0183"),
    _target("vedirect", VEDIRECT, "blocks of VE.Direct"),
    _target("p1", P1_CHECKED, "telegrams of meters"),
    _target("p1-open", P1_OPEN, "telegrams of meters without a CRC"),
    _target("jsonl", MEMBERS, "members of JSON lines"),
    _target("slip", SLIP, "packets of SLIP"),
    _target("bytes", BYTES, "bytes in chunks"),
    _target("xbee", XBEE, "API frames of XBee modules"),
    _target("xbee-escaped", XBEE_ESCAPED, "escaped API frames of XBee modules"),
    Target("lines-plain", "lines of text", _heard(PLAIN), _seeds("lines")),
    Target("jsonl-split", "all members of JSON lines", _heard(SPLIT), _seeds("jsonl")),
    Target("echo-of-bytes", "the echo of a line", _echo, _seeds("lines"), grown=lambda n: [b"READ 10" * n]),
    *(
        Target(f"{name}-out", f"frames that leave as {name}", _written(record), _data(name), whole=True)
        for name, record in _OUT.items()
    ),
]
