"""Targets of CAN databases: frames that come, values that leave, long messages of J1939, and files."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Final

from bridges.items import EXTENDED
from bridges.protocols.dbc.database import load
from bridges.protocols.dbc.j1939.pgn import GLOBAL
from bridges.protocols.dbc.j1939.transport import (
    ABORT,
    BAM,
    CTS,
    END,
    RTS,
    Transports,
    Whole,
    announce,
    packets,
)
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


WRITTEN: Final = (
    "Command/Demand",
    "Command",
    "Command/Mode",
    "Lights/Level",
    "Lights/Page",
    "Demand/128/Wanted",
    "x",
)


def _leave(pieces: Pieces) -> object:
    """Let data leave under each pattern. An empty record lets a quarter of a second pass."""
    made, now_s, found = DbcTranslator(_record(), Wire("fuzz", "frames", Stats())), 0.0, list[object]()
    for data in records(b"".join(pieces)):
        now_s += 0.0 if data else 0.25
        found.append(made.turn(now_s))
        for pattern in WRITTEN if data else ():
            sent = made.send(pack(1, pattern_of(f"r/{pattern}"), data), now_s)
            assert all(len(item[1]) <= 64 for item in sent.items)
            found.append((list(sent.items), sent.why))
    return found


class _Sender:
    """A sender of long messages without end. Each byte of one says who sends it, and in which message."""

    def __init__(self, number: int, source: int, destination: int) -> None:
        self.number, self.source, self.destination = number, source, destination
        self.begun, self.said = 0, list[bytes]()
        self._frames: Iterator[bytes] = iter(())
        self.last = b""

    def next(self) -> bytes:
        frame = next(self._frames, b"")
        if not frame:
            self.renew()
            frame = next(self._frames)
        self.last = frame
        return frame

    def renew(self) -> None:
        """Begin another message."""
        self.begun += 1
        data = bytes((self.number << 4 | self.begun & 15,)) * (9 + self.begun * 5 % 20)
        self.said.append(data)
        announced = announce(0xFECA, len(data), BAM if self.destination == GLOBAL else RTS)
        self._frames = iter([announced, *packets(data)])


def _interleaved(pieces: Pieces) -> object:
    """Let two senders speak in turns, from two addresses or from one; each byte is a step of one of them.

    No message mixes both. Where they have two addresses, frames are lost, come twice, and are answered.
    """
    data, rejected, now_s = b"".join(pieces), dict[str, int](), 0.0
    alike, heard, found = data[:1] > b"\x7f", Transports(rejected), list[Whole]()
    to = 2 if data[:1] > b"\xbf" or b"\x3f" < data[:1] <= b"\x7f" else GLOBAL
    senders = [_Sender(0, 1, to), _Sender(1, 1 if alike else 3, to)]
    for step in data[1:]:
        sender, action = senders[step & 1], step >> 1 & 7
        if action == 7:
            now_s += 2.0 if alike else 0.3
            for one in senders if alike else ():
                one.renew()
        elif action == 6 and not alike:
            heard.control(
                2,
                sender.source,
                bytes(((CTS, END, ABORT)[step >> 4 & 1], 1, step >> 5, 0, 0, 0xCA, 0xFE, 0)),
                now_s,
            )
        else:
            last = sender.last if action == 5 and sender.last and not alike else sender.next()
            if action != 4 or alike:
                told = (
                    heard.control
                    if len(last) == 8 and last[0] in (RTS, BAM) and last[5:7] == b"\xca\xfe"
                    else heard.packet
                )
                whole = told(sender.source, to, last, now_s)
                found += [whole] if whole else []
    for whole in found:
        assert len({one >> 4 for one in whole.data if one != 0xFF}) <= 1, "two senders in one message"
        assert not alike or whole.data in (*senders[0].said, *senders[1].said)
    return [tuple(whole) for whole in found], rejected, len(heard)


FIRST: Final = 'VERSION ""\nBO_ 1999 First: 8 V\n SG_ Kept : 0|8@1+ (1,0) [0|0] "" V\n'
"""A message that is there whatever follows it."""

FLAWED: Final = """CM_ "no end"
BO_ 19088743 1_A: 8 V
 SG_ 2_P M : 0|8@1+ (.25,-.5) [0|0] "" W
 SG_ Q m1M : 8|8@1+ (1,0) [0|0] "" W
 SG_ B m2 : 16|32@1- (1,0) [0|0] ""
 SG_ C m2 16|8@1+ (1,0) [0|0] "" W
SG_MUL_VAL_ 19088743 Q 2_P 1-1;
SG_MUL_VAL_ 19088743 B Q 2-2, 4-6;
SIG_VALTYPE_ 19088743 B 1;
BA_DEF_ BO_ "VFrameFormat" ENUM "StandardCAN","ExtendedCAN","J1939PG";
BA_DEF_DEF_ "VFrameFormat" "ExtendedCAN";
BA_ "VFrameFormat" BO_ 19088743 2;
BA_DEF_ BO_ "GenMsgCycleTime" INT 0 9;
BA_ "GenMsgCycleTime" BO_ 19088743 7;
BA_DEF_ SG_ "SystemSignalLongSymbol" STRING ;
BA_ "SystemSignalLongSymbol" SG_ 19088743 B "Longer";
VAL_ 19088743 B 0 "Off" 1 "On" ;
BO_TX_BU_ 19088743 : W,3V;
SIG_GROUP_ 5 G 1 : A B
"""


def _database(pieces: Pieces) -> object:
    """Read a database behind a message that must be there; what is mended, cantools takes."""
    found = load(FIRST + b"".join(pieces).decode("utf-8", "replace"), "dbc")
    assert found.messages["First"].signals[0].name == "Kept"
    return sorted(found.messages), [flaw.text for flaw in found.flaws]


TARGETS: Final = (
    Target(
        "dbc",
        "CAN frames by a database, J1939 among them, and values that leave",
        _drive,
        _seeds,
        whole=True,
        inputs=500,
        why="0.5 ms an input: each makes a translator",
        grown=lambda n: [
            recorded(*(_frame(0x100, bytes((n & 255, i & 255, 0, 0, 0, 0, 0, 0))) for i in range(n)))
        ],
    ),
    Target(
        "dbc-out",
        "values that leave by a database",
        _leave,
        lambda: [
            recorded(b"12.5", b'{"Demand":1,"Mode":"On","Checksum":3}', b"", b"7", b"Off"),
            recorded(b'{"Page":1,"Level":7}', b"1e3", b"nan", b"-500", b"", b"", b"0x10"),
        ],
        whole=True,
        inputs=500,
        why="1 ms an input: each makes a translator",
    ),
    Target(
        "j1939",
        "long messages of J1939, of two senders in turns",
        _interleaved,
        lambda: [
            bytes((first, *(0, 1) * 12, 0, 0, 14, 13, 12, *(1, 0) * 8, *(0,) * 9))
            for first in (0, 64, 128, 255)
        ],
        whole=True,
    ),
    Target(
        "dbc-file",
        "databases of CAN messages",
        _database,
        lambda: [
            CAR.encode(),
            TRUCK.encode(),
            FLAWED.encode(),
            b"\n\n".join(CAR.encode().split(b"\n\n")[3:6]),
        ],
        whole=True,
        inputs=150,
        why="3 ms an input: cantools reads them",
    ),
)
