"""Requests of Modbus, and the judgement of answers. Pure.

What is between address and checksum is the protocol data unit (PDU): a function code and its data.
"""

from struct import Struct
from typing import Final, NamedTuple

from bridges.protocols.line import Outcome
from bridges.protocols.modbus.protocol import Kind

READ: Final[dict[Kind, int]] = {"coil": 1, "discrete": 2, "holding": 3, "input": 4}
WRITE_COIL, WRITE_REGISTER, WRITE_REGISTERS = 5, 6, 16
EXCEPTION: Final = 0x80
PDU_BYTES_MAX: Final = 253
MEANINGS: Final = {
    1: "illegal function",
    2: "illegal data address",
    3: "illegal data value",
    4: "device failure",
    5: "acknowledged, not done yet",
    6: "device busy",
    7: "negative acknowledge",
    8: "memory parity error",
    10: "no path from the gateway",
    11: "the device behind the gateway does not answer",
}
"""The meanings of exception codes."""
UNSURE: Final = frozenset({5, 11})
"""Codes after which nobody knows whether a write was done."""

_HEAD: Final = Struct(">BHH")
_MANY: Final = Struct(">BHHB")


class Ask(NamedTuple):
    """A request to a device. `data_bytes`: those that its answer has, if it reads."""

    device: int
    pdu: bytes
    data_bytes: int = 0

    @property
    def is_write(self) -> bool:
        return self.pdu[0] not in _READS

    @property
    def answer_bytes(self) -> int:
        """The length of the PDU that answers."""
        return 5 if self.is_write else 2 + self.data_bytes


_READS: Final = frozenset(READ.values())


def reading(device: int, kind: Kind, start: int, count: int) -> Ask:
    """Return the request for `count` registers or bits."""
    size = -(-count // 8) if READ[kind] <= READ["discrete"] else 2 * count
    return Ask(device, _HEAD.pack(READ[kind], start, count), size)


def writing(device: int, kind: Kind, register: int, data: bytes, many: bool = False) -> Ask:
    """Return the request that writes a coil (one byte, 0 or 1) or registers."""
    if kind == "coil":
        return Ask(device, _HEAD.pack(WRITE_COIL, register, 0xFF00 if data[0] else 0))
    if len(data) == 2 and not many:
        return Ask(device, _HEAD.pack(WRITE_REGISTER, register, int.from_bytes(data, "big")))
    return Ask(device, _MANY.pack(WRITE_REGISTERS, register, len(data) // 2, len(data)) + data)


def length_of(start: bytes) -> int:
    """Return the length of the PDU that begins so; 0 if more bytes are needed, -1 for a foreign function."""
    if not start:
        return 0
    function = start[0]
    if function & EXCEPTION:
        return 2
    if function in (WRITE_COIL, WRITE_REGISTER, WRITE_REGISTERS):
        return 5
    if function in _READS:
        return 2 + start[1] if len(start) > 1 else 0
    return -1


def answered_by(device: int) -> str:
    """Return the words for an answer of another device than the one that was asked."""
    return f"device {device} does in its place"


def outcome_of(ask: Ask, pdu: bytes) -> Outcome:
    """Judge what came as the answer to a request: whole, of the same device, and intact."""
    function = ask.pdu[0]
    if len(pdu) == 2 and pdu[0] == function | EXCEPTION:
        words = f"exception {pdu[1]} ({MEANINGS.get(pdu[1], 'unknown')})"
        return Outcome(refused=words, unsure=pdu[1] in UNSURE, code=pdu[1])
    if pdu == ask.pdu and not ask.is_write:
        return Outcome(fault="echo")
    if pdu[:1] != ask.pdu[:1]:
        return Outcome(fault="other answer")
    if ask.is_write:
        return Outcome() if pdu == ask.pdu[:5] else Outcome(fault="other answer")
    if len(pdu) < 2 or len(pdu) < 2 + pdu[1]:
        return Outcome(fault="malformed")
    if len(pdu) > 2 + pdu[1]:
        return Outcome(fault="extra bytes")
    if pdu[1] != ask.data_bytes:
        return Outcome(fault="short answer" if pdu[1] < ask.data_bytes else "long answer")
    return Outcome(pdu[2:])
