"""Targets of protocols whose devices are asked: what devices answer, and what commands say."""

from dataclasses import replace
from typing import Final

from bridges.items import Answer
from bridges.protocols.modbus.mbap import HEADER
from bridges.protocols.modbus.protocol import Modbus, Register
from bridges.protocols.modbus.rtu import framed
from bridges.protocols.modbus.translator import ModbusTranslator
from bridges.protocols.queries.protocol import Queries, Query
from bridges.protocols.queries.translator import QueriesTranslator
from bridges.protocols.registers.protocol import ChipRegister, Registers
from bridges.protocols.registers.translator import RegistersTranslator
from bridges.protocols.translator import Translator, Wire
from bus.ledger import Stats
from bus.wire.frame import PUB, pack
from bus.wire.pattern import Pattern
from tests.fuzz.target import Pieces, Target, recorded, records

TABLE: Final = Modbus(
    registers=(
        Register(register=0, type="f32", pattern=("a",), poll_ms=100),
        Register(register=9, type="ascii", length=2, pattern=("b",)),
        Register(register=3, kind="coil", pattern=("c",), write=True),
        Register(register=20, pattern=("d",), write=True, low=0, high=9),
        Register(register=20, type="bcd16", bits=(1, 14), pattern=("e",)),
        Register(register=20, type="linear11", pattern=("f",)),
    )
)
CHIPS: Final = Registers(
    registers=(
        ChipRegister(target=0x48, register=0, pattern=("a",), pec=True),
        ChipRegister(target=0x48, register=9, type="ascii", size=4, access="counted", pattern=("b",)),
    )
)


def _run(master: Translator[bytes], data: bytes) -> object:
    """Let a device answer each request with the next record, late if its first byte is odd."""
    now_s, found, answers = 0.0, list[bytes](), list(records(data))
    for _ in range(4 * len(answers) + 4):
        now_s = max(now_s, master.due_s)
        turn = master.turn(now_s)
        found += turn.messages
        for _ in turn.items:
            if answers:
                late_s = 0.7 if answers[0][:1] and answers[0][0] & 1 else 0.001
                found += master.receive([answers.pop(0)], now_s + late_s)
    return found, dict(master.wire.stats.rejected), master.over, master.condition


def _rtu(pieces: Pieces) -> object:
    return _run(ModbusTranslator(TABLE, Wire("fuzz", "bytes", Stats(), byte_s=0.001)), b"".join(pieces))


def _tcp(pieces: Pieces) -> object:
    return _run(ModbusTranslator(TABLE, Wire("fuzz", "bytes", Stats())), b"".join(pieces))


TEXTS: Final = Queries(
    queries=(
        Query(ask="A?", pattern=("a",), poll_ms=100, no_value=("9.9E37",)),
        Query(ask="B?", pattern=("b",), type="text"),
        Query(ask="C?", pattern=("c",), type="hex", match="41 ?0C (?P<data>.. ..)"),
        Query(
            ask="D?", pattern=("d",), template="D {data}", ack="OK", write=True, low=0, high=9,
            choices={"0": "off"},
        ),
        Query(
            ask="E?", pattern=("e",), type="text", template="E {data}", write=True, fits="[a-z]*",
            match="(?P<sign>-?) *(?P<data>.*)",
        ),
    ),
    begin=("ATZ",),
    longest_bytes=40,
)  # fmt: skip


def _line(pieces: Pieces) -> object:
    return _run(QueriesTranslator(TEXTS, Wire("fuzz", "bytes", Stats(), byte_s=0.001)), b"".join(pieces))


def _prompt(pieces: Pieces) -> object:
    record = replace(TEXTS, delimiter="\r", answer_delimiter=">")
    return _run(QueriesTranslator(record, Wire("fuzz", "bytes", Stats())), b"".join(pieces))


def _text_seeds() -> list[bytes]:
    said = (b"ELM327 v1.5\r\r>", b"+1.25E+1\r\n", b"A?\n12\n", b"SEARCHING...\r41 0C 1A F8 \r\r>", b"on\n")
    return [recorded(*said), recorded(b"x" * 50, b"\n", b"9.9E37\n", b"- 1\n>", b"\xb5\n", b"B?\r\n>")]


ANSWERS: Final = (
    b"\3\4\x43\x66\x66\x66",
    b"\3\4AB\0\0",
    b"\1\1\1",
    b"\3\2\0\7",
    b"\x83\2",
    b"\6\0\x14\0\7",
)


def _rtu_seeds() -> list[bytes]:
    return [
        recorded(*(framed(1, pdu) for pdu in ANSWERS)),
        recorded(framed(1, ANSWERS[0]) + b"\0", b"", framed(2, b"\3")),
    ]


def _tcp_seeds() -> list[bytes]:
    return [recorded(*(HEADER.pack(n + 1, 0, 1 + len(pdu), 1) + pdu for n, pdu in enumerate(ANSWERS)))]


def _chips(pieces: Pieces) -> object:
    """Let chips answer each request with the next record."""
    master = RegistersTranslator(CHIPS, Wire("fuzz", "registers", Stats()))
    now_s, found, answers = 0.0, list[bytes](), list(records(b"".join(pieces)))
    for _ in range(4 * len(answers) + 4):
        now_s = max(now_s, master.due_s)
        turn = master.turn(now_s)
        found += turn.messages
        for request in turn.items:
            if answers:
                found += master.receive([Answer(request.token, answers.pop(0))], now_s + 0.001)
    return found, dict(master.wire.stats.rejected), master.condition


COMMANDED: Final = [
    Modbus(registers=TABLE.registers[2:], form="text"),
    Modbus(registers=TABLE.registers[2:], form="number"),
    Modbus(registers=TABLE.registers[2:], form="json"),
]


def _command(pieces: Pieces) -> object:
    """Give data as a command of each kind. Return why it is none, and what is written."""
    found = list[object]()
    for record in COMMANDED:
        master = ModbusTranslator(record, Wire("fuzz", "bytes", Stats()))
        found += _commanded(master, "cd", pieces)
    found += _commanded(QueriesTranslator(TEXTS, Wire("fuzz", "bytes", Stats())), "de", pieces)
    return found


def _commanded(master: Translator[bytes], names: str, pieces: Pieces) -> list[object]:
    data = b"".join(pieces)[:2048]
    found = [master.send(pack(PUB, Pattern(name, "set"), data), 0.0) for name in names]
    return [*found, master.turn(0.0), master.turn(0.6)]


WHY: Final = "2 ms an input: each record is a turn of the master"
TARGETS: Final = (
    Target(
        "modbus-rtu",
        "answers of Modbus devices on a serial line",
        _rtu,
        _rtu_seeds,
        whole=True,
        inputs=500,
        why=WHY,
    ),
    Target(
        "modbus-tcp",
        "answers of Modbus devices over TCP",
        _tcp,
        _tcp_seeds,
        whole=True,
        inputs=500,
        why=WHY,
    ),
    Target(
        "queries",
        "answers of devices that speak lines of text",
        _line,
        _text_seeds,
        whole=True,
        inputs=500,
        why=WHY,
    ),
    Target(
        "queries-prompt",
        "answers that end with a prompt",
        _prompt,
        _text_seeds,
        whole=True,
        inputs=500,
        why=WHY,
    ),
    Target(
        "registers",
        "answers of chips on I2C",
        _chips,
        lambda: [recorded(b"\0\7\x21", b"\4abcd", b"\4ab", b"")],
        whole=True,
    ),
    Target(
        "commands",
        "values that are written into devices",
        _command,
        lambda: [b"7", b"-1.5e3", b'{"v":7,"unit":"A","t":1}', b"\x40\x1c\0\0\0\0\0\0", b"true"],
        whole=True,
    ),
)
