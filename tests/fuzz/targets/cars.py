"""Targets of CAN databases: frames that come, values that leave, long messages of J1939, and files."""

from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Final

from bridges.items import EXTENDED
from bridges.protocols.dbc.database import Unreadable, load
from bridges.protocols.dbc.j1939.transport import announce, packets
from bridges.protocols.dbc.protocol import Dbc
from bridges.protocols.dbc.translator import DbcTranslator
from bridges.protocols.translator import Wire
from bus.ledger import Stats
from bus.wire.frame import is_frame, pack
from bus.wire.notation import pattern_of
from tests.bridges.protocols.dbc.dbc_support import CAR, TRUCK
from tests.fuzz.target import Pieces, Target, recorded, records

BOTH: Final = CAR.replace("BU_: ", "BU_: ENGINE GATE ") + "".join(
    f"{block}\n\n" for block in TRUCK.split("\n\n") if block.startswith("BO_")
)
"""The messages of a car and of a truck in one database."""


@cache
def _record() -> Dbc:
    path = Path(mkdtemp()) / "both.dbc"
    path.write_text(_ordered(BOTH))
    return Dbc(
        file=str(path), root=("r",), j1939=True, publish="change", every_ms=100.0, cycle=True, age_ms=500.0,
        send=("Command", "Lights", "Demand"), initial={"Mode": 0}, fill={"AliveCounter": "counter"},
        address=128, name=5,
    )  # fmt: skip


def _ordered(text: str) -> str:
    """Return a database with its messages in front of what is about them."""
    blocks = text.split("\n\n")
    messages = [block for block in blocks if block.startswith("BO_")]
    return "\n\n".join([blocks[0], blocks[3], *messages, *blocks[-1:]])


def _drive(pieces: Pieces) -> object:
    """Let frames come and values leave. A record of fewer than 5 bytes lets time pass."""
    stats = Stats()
    made = DbcTranslator(_record(), Wire("fuzz", "frames", stats))
    found, now_s = list[object](), 0.0
    for record in records(b"".join(pieces)):
        if len(record) < 5:
            now_s += len(record) / 4
            found.append(made.turn(now_s))
        elif record[0] == 0 and is_frame(record[1:]):
            sent = made.send(record[1:], now_s)
            found.append((list(sent.items), sent.why))
        else:
            identifier = int.from_bytes(record[:4], "big")
            found.append(made.receive([(identifier, record[5:], record[4] & 3)], now_s))
    return found, stats.rejected


def _frame(identifier: int, data: bytes) -> bytes:
    return identifier.to_bytes(4, "big") + b"\0" + data


def _seeds() -> list[bytes]:
    long = [_frame(EXTENDED | 0x18ECFF05, announce(0xFECA, 20))]
    long += [_frame(EXTENDED | 0x18EBFF05, packet) for packet in packets(bytes(range(20)))]
    words = (("Command/Demand", b"12.5"), ("Command", b'{"Demand":1,"Checksum":3}'), ("Lights/Level", b"7"))
    values = [b"\0" + pack(1, pattern_of(f"r/{pattern}"), data) for pattern, data in words]
    values.append(b"\0" + pack(1, pattern_of("r/Demand/128/Wanted"), b"1e3"))
    cars = [_frame(identifier, bytes(range(8))) for identifier in (0x100, 0x200, 0x300, 0x400)]
    claims = [_frame(EXTENDED | 0x18EEFF80, bytes(8)), _frame(EXTENDED | 0x18EA80FE, b"\0\xee\0")]
    return [
        recorded(b"abcd", *long, *claims[1:]),
        recorded(b"abcd", b"ab", *values, b"abc", *values),
        recorded(*cars, b"a", *cars, b"abc", *(_frame(0x300, bytes((page, 1, 2))) for page in (0, 1, 9))),
        recorded(b"abcd", *claims, *values),
        recorded(*long[:2], *long[:3], b"abcd", *long),
    ]


def _database(pieces: Pieces) -> object:
    found = load(b"".join(pieces).decode("utf-8", "replace"), "dbc")
    return sorted(found.messages), [flaw.text for flaw in found.flaws]


TARGETS: Final = (
    Target(
        "dbc",
        "CAN frames by a database, J1939 among them, and values that leave",
        _drive,
        _seeds,
        whole=True,
        inputs=2_000,
        why="0.5 ms an input: each makes a translator",
        grown=lambda n: [
            recorded(*(_frame(0x100, bytes((n & 255, i & 255, 0, 0, 0, 0, 0, 0))) for i in range(n)))
        ],
    ),
    Target(
        "dbc-file",
        "databases of CAN messages",
        _database,
        lambda: [CAR.encode(), TRUCK.encode(), b"\n\n".join(CAR.encode().split(b"\n\n")[3:6])],
        (Unreadable,),
        whole=True,
        inputs=150,
        why="3 ms an input: cantools reads them",
    ),
)
