"""Databases for tests of `dbc`: one of a small car, one of J1939, and random ones."""

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bridges.items import EXTENDED, CanFrame
from bridges.protocols.dbc.protocol import Dbc
from bridges.protocols.translator import Translator
from tests.bridges.protocols.spoken_support import told, translator, wire

CAR = """VERSION ""

NS_ :

BS_:

BU_: ECM TCM BODY GATEWAY

BO_ 256 EngineData: 8 ECM
 SG_ Rpm : 7|16@0+ (0.25,0) [0|16383.75] "rpm" TCM
 SG_ Coolant : 16|8@1+ (1,-40) [-40|215] "degC" TCM
 SG_ Torque : 24|12@1- (0.5,0) [-1000|1000] "Nm" TCM
 SG_ Running : 36|1@1+ (1,0) [0|1] "" TCM
 SG_ Fuel : 40|24@1+ (1,0) [0|0] "ul" TCM

BO_ 512 Gearbox: 2 TCM
 SG_ Gear : 0|3@1+ (1,0) [0|7] "" ECM
 SG_ Oil : 8|8@1- (1,0) [0|0] "degC" ECM

BO_ 768 Cells: 5 BODY
 SG_ Pack M : 0|4@1+ (1,0) [0|0] "" ECM
 SG_ State : 4|4@1+ (1,0) [0|0] "" ECM
 SG_ Volt1 m0 : 8|16@1+ (0.001,0) [0|5] "V" ECM
 SG_ Volt2 m0 : 24|16@1+ (0.001,0) [0|5] "V" ECM
 SG_ Temp1 m1 : 8|8@1- (1,0) [0|0] "degC" ECM

BO_ 1024 Command: 4 GATEWAY
 SG_ Demand : 0|12@1- (0.5,0) [-500|500] "Nm" ECM
 SG_ Mode : 12|2@1+ (1,0) [0|3] "" ECM
 SG_ AliveCounter : 14|4@1+ (1,0) [0|15] "" ECM
 SG_ Checksum : 24|8@1+ (1,0) [0|255] "" ECM

BO_ 1025 Lights: 2 GATEWAY
 SG_ Page M : 0|4@1+ (1,0) [0|0] "" BODY
 SG_ Left m0 : 8|1@1+ (1,0) [0|1] "" BODY
 SG_ Level m1 : 8|8@1+ (1,0) [0|100] "%" BODY

CM_ SG_ 256 Rpm "of the crankshaft";
BA_DEF_ BO_  "GenMsgCycleTime" INT 0 10000;
BA_DEF_DEF_  "GenMsgCycleTime" 0;
BA_ "GenMsgCycleTime" BO_ 256 10;
BA_ "GenMsgCycleTime" BO_ 512 20;
BA_ "GenMsgCycleTime" BO_ 1024 50;
VAL_ 512 Gear 0 "Park" 1 "Reverse" 2 "Neutral" 3 "Drive" ;
VAL_ 1024 Mode 0 "Off" 1 "On" ;
"""

TRUCK = """VERSION ""

BU_: ENGINE GATE

BO_ 2364540158 EEC1: 8 ENGINE
 SG_ TorqueMode : 0|4@1+ (1,0) [0|15] "" GATE
 SG_ Speed : 24|16@1+ (0.125,0) [0|8031.875] "rpm" GATE
 SG_ Source : 40|8@1+ (1,0) [0|255] "" GATE
 SG_ Starter : 48|4@1+ (1,0) [0|15] "" GATE

BO_ 2566834942 Faults: 20 ENGINE
 SG_ Lamp : 6|2@1+ (1,0) [0|3] "" GATE
 SG_ First : 16|32@1+ (1,0) [0|0] "" GATE
 SG_ Last : 128|32@1+ (1,0) [0|0] "" GATE

BO_ 2348810494 Demand: 8 GATE
 SG_ Control : 0|2@1+ (1,0) [0|3] "" ENGINE
 SG_ Wanted : 8|16@1+ (0.125,0) [0|8031.875] "rpm" ENGINE

BA_DEF_ BO_  "VFrameFormat" ENUM  "StandardCAN","ExtendedCAN","reserved","J1939PG";
BA_DEF_DEF_  "VFrameFormat" "J1939PG";
VAL_ 2364540158 Starter 0 "Off" 14 "Error" 15 "Not available" ;
VAL_ 2364540158 TorqueMode 14 "Other" 15 "Not available" ;
"""

SAIL = """VERSION ""

BU_: GPS

BO_ 2381841918 Gnss: 43 GPS
 SG_ Sid : 0|8@1+ (1,0) [0|0] "" GPS
 SG_ Date : 8|16@1+ (1,0) [0|0] "d" GPS
 SG_ Time : 24|32@1+ (0.0001,0) [0|0] "s" GPS
 SG_ Lat : 56|64@1- (1e-16,0) [0|0] "deg" GPS
 SG_ Lon : 120|64@1- (1e-16,0) [0|0] "deg" GPS

BO_ 2314276350 Rudder: 8 GPS
 SG_ Position : 32|16@1- (0.0001,0) [0|0] "rad" GPS
 SG_ Order : 16|16@1+ (1,0) [0|0] "" GPS

BA_DEF_ BO_  "VFrameFormat" ENUM  "StandardCAN","ExtendedCAN","reserved","J1939PG";
BA_DEF_DEF_  "VFrameFormat" "J1939PG";
"""

SELECTED = """VERSION ""
BU_: A
BO_ 5 Deep: 2 A
 SG_ Page M : 0|4@1+ (2,0) [0|0] "" A
 SG_ Named m1 : 8|8@1+ (1,0) [0|0] "" A
 SG_ Scaled m4 : 8|8@1+ (1,0) [0|0] "" A
VAL_ 5 Page 1 "One" ;
"""

_SCALES = ((1, 0), (1, 0), (0.1, 0), (0.5, -40), (2, 0), (1, -5), (0.03125, 0), (1e-07, 3), (-0.5, 100))


GNSS = EXTENDED | 0x0DF80520
POSITION = bytes((7, *(19326).to_bytes(2, "little"), *(432_290_000).to_bytes(4, "little"))) + b"".join(
    (int(degrees * 10**6) * 10**10).to_bytes(8, "little", signed=True) for degrees in (52.5, -5.25)
)
WHOLE = POSITION + bytes(43 - len(POSITION))
"""The data of `Gnss` of `SAIL`, whole and up to its last signal."""


def fast(data: bytes, number: int = 2, identifier: int = GNSS) -> list[CanFrame]:
    """Return a message of NMEA 2000 as the frames of a fast packet."""
    pieces = [bytes((number << 5, len(data))) + data[:6]]
    pieces += [
        bytes((number << 5 | n,)) + data[at : at + 7] for n, at in enumerate(range(6, len(data), 7), 1)
    ]
    return [(identifier, piece.ljust(8, b"\xff"), 0) for piece in pieces]


def written(folder: Path, text: str = CAR, name: str = "car.dbc") -> Path:
    """Write a database into a folder, and return its path."""
    path = folder / name
    path.write_text(text)
    return path


def made(folder: Path, text: str = CAR, root: Sequence[str] = ("car",), **settings: Any) -> Translator[Any]:
    """Return the translator of a database on a wire in memory."""
    wired = {key: settings.pop(key) for key in ("may_act", "unix_s") if key in settings}
    record = Dbc(file=str(written(folder, text)), root=tuple(root), **settings)
    return translator(record, "frames", **wired)


def shown(made: Translator[Any], items: Sequence[CanFrame], now_s: float = 0.0) -> dict[str, str]:
    """Return the text of the frames that items become, by pattern."""
    record = made._record  # type: ignore[attr-defined]  # noqa: SLF001
    names = (*record.root, *record.names())
    return {pattern: data.decode() for pattern, data in told(made.receive(items, now_s), *names)}


def random_database(chance: random.Random, messages: int) -> str:
    """Return a DBC with messages of random signals: both orders of bytes, signed, floats, and multiplexed."""
    body, tail = list[str](), list[str]()
    for number in range(messages):
        identifier, size = 100 + number, chance.choice((1, 2, 4, 8, 8, 8, 64))
        body.append(f"BO_ {identifier} Message{number}: {size} ECU")
        made = _Maker(chance, identifier, size)
        body += made.lines()
        tail += made.tail
    return "\n".join(('VERSION ""', "BU_: ECU", *body, *tail, ""))


class _Maker:
    """Makes the signals of one random message."""

    def __init__(self, chance: random.Random, identifier: int, size: int) -> None:
        self.chance, self.identifier, self.size = chance, identifier, size
        self.tail, self.count = list[str](), 0

    def lines(self) -> Iterator[str]:
        """Yield the lines of its signals."""
        used = set[int]()
        kind = self.chance.choice(("plain", "plain", "mux", "extended")) if self.size > 2 else "plain"
        if kind == "plain":
            yield from self.some(used, "", 8)
            return
        yield ' SG_ Page M : 0|3@1+ (1,0) [0|0] "" ECU'
        used |= set(range(3))
        yield from self.some(used, "", 2)
        for page in range(self.chance.randrange(1, 5)):
            taken = set(used)
            if kind == "extended" and page == 0 and (place := self.place(taken, 2, False)) is not None:
                yield f' SG_ Inner m0M : {place}|2@1+ (1,0) [0|0] "" ECU'
                self.tail.append(f"SG_MUL_VAL_ {self.identifier} Inner Page 0-0, 6-7;")
                for inner in range(2):
                    yield from self.some(
                        set(taken), f"m{2 * inner}", 2, "Inner", f"{2 * inner}-{2 * inner + 1}"
                    )
            else:
                above = ("Page", f"{page}-{page}") if kind == "extended" else ()
                yield from self.some(taken, f"m{page}", 4, *above)

    def some(self, used: set[int], mark: str, most: int, above: str = "", ids: str = "") -> Iterator[str]:
        for _ in range(self.chance.randrange(1, most + 1)):
            is_float = self.chance.random() < 0.1
            bits = self.chance.choice((32, 64)) if is_float else self.chance.choice((1, 3, 8, 12, 16, 31, 64))
            is_big = self.chance.random() < 0.4
            start = self.place(used, bits, is_big)
            if start is None:
                continue
            self.count += 1
            name = f"S{self.count}"
            scale, offset = self.chance.choice(_SCALES)
            sign = self.chance.choice("+-")
            yield (
                f" SG_ {name} {mark} : {start}|{bits}@{'0' if is_big else '1'}{sign} ({scale},{offset}) "
                f'[0|0] "V" ECU'
            )
            if above:
                self.tail.append(f"SG_MUL_VAL_ {self.identifier} {name} {above} {ids};")
            if is_float:
                self.tail.append(f"SIG_VALTYPE_ {self.identifier} {name} : {bits // 32};")
            elif self.chance.random() < 0.3:
                self.tail.append(f'VAL_ {self.identifier} {name} 0 "Off" 1 "On" ;')

    def place(self, used: set[int], bits: int, is_big: bool) -> int | None:
        """Take free bits, and return where the signal starts; None if there is no room."""
        for _ in range(20):
            first = self.chance.randrange(8 * self.size)
            run = range(first, first + bits)
            places = {8 * (bit // 8) + 7 - bit % 8 for bit in run} if is_big else set(run)
            if run[-1] < 8 * self.size and not places & used:
                used |= places
                return 8 * (first // 8) + 7 - first % 8 if is_big else first
        return None


__all__ = ["CAR", "SAIL", "SELECTED", "TRUCK", "made", "random_database", "shown", "told", "wire", "written"]
