"""TMQ over UDP: each datagram is a message and its CRC-32, big-endian. Pure."""

from collections.abc import Sequence
from zlib import crc32

from bridges.protocols.translator import Sent, Translator
from bus.wire.envelope import message_bytes

CRC_BYTES = 4


def encode(message: bytes) -> bytes:
    """Return the datagram of a message."""
    return message + crc32(message).to_bytes(CRC_BYTES, "big")


def fault_of(datagram: bytes) -> str:
    """Return why a datagram holds no message: `crc` or `malformed`; "" if it holds one."""
    message = datagram[:-CRC_BYTES]
    if crc32(message).to_bytes(CRC_BYTES, "big") != datagram[-CRC_BYTES:]:
        return "crc"
    return "" if message and message_bytes(message) == len(message) else "malformed"


class TmqDatagrams(Translator[bytes]):
    """A translator of TMQ's own datagrams."""

    def receive(self, items: Sequence[bytes], now_s: float) -> list[bytes]:
        found = list[bytes]()
        for datagram in items:
            if fault := fault_of(datagram):
                self.reject(fault, 1)
            else:
                found.append(datagram[:-CRC_BYTES])
        self.found += len(found)
        return found

    def send(self, message: bytes, now_s: float) -> Sent[bytes]:
        return Sent((encode(message),))
