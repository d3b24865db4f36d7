"""The log of candump for the CAN frames on wires in a capture, which canplayer reads. Pure.

Source: `candump -L`, and lib.h of can-utils for compact frames: `(1436509052.249713) can0 123#1122`.
"""

import re
from typing import Final

from bridges.items import ERROR, EXTENDED, FD, IDENTIFIER, LENGTH, REMOTE, STATE, SWITCH
from bridges.media.can.socketcan import unpack_frame
from capture.pcapng import Packet
from capture.schema import Kind

_FRAMES: Final = b"frames:"
_OTHER: Final = re.compile(r"[^A-Za-z0-9_.-]")
_NAME_CHARS: Final = 15  # IFNAMSIZ, without its zero
_BRS, _ESI = 1, 2


def candump_line(packet: Packet) -> str:
    """Return the line of a row, "" if it is no CAN frame on a wire. The interface is that of the link."""
    if packet.kind != Kind.WIRE or not packet.message.startswith(_FRAMES):
        return ""
    frame = unpack_frame(packet.message[len(_FRAMES) :])
    if frame is None:
        return ""
    seconds, ns = divmod(packet.ts_ns, 1_000_000_000)
    return f"({seconds:010}.{ns // 1000:06}) {_interface(packet.peer)} {_compact(*frame)}\n"


def _interface(peer: str) -> str:
    """Return a name that an interface may have, from that of a link, such as `can:socketcan:can0`."""
    return _OTHER.sub("_", peer.rpartition(":")[2])[:_NAME_CHARS] or "can"


def _compact(identifier: int, data: bytes | bytearray, marks: int) -> str:
    """Return a frame as `cansend` takes it."""
    number = identifier & IDENTIFIER
    wide = identifier & (EXTENDED | ERROR)
    head = f"{number | identifier & ERROR:08X}" if wide else f"{number:03X}"
    if marks & FD:
        flags = (_BRS if marks & SWITCH else 0) | (_ESI if marks & STATE else 0)
        return f"{head}##{flags:X}{data.hex().upper()}"
    code = f"_{marks >> 4:X}" if marks & LENGTH else ""
    if identifier & REMOTE:
        return f"{head}#R{len(data) or ''}{code}"
    return f"{head}#{data.hex().upper()}{code}"
