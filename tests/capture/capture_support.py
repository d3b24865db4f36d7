"""Rows and files of captures for several tests."""

from pathlib import Path

from bus.wire.envelope import Envelope, wrap
from bus.wire.frame import PUB, pack
from capture.pcapng import Packet, Writer

FRAMES = [pack(PUB, (1, n), b"%d" % n) for n in range(30)]
STAMPED = [wrap(frame, Envelope(9, n)) for n, frame in enumerate(FRAMES)]


def row(number: int, message: bytes, hub: str = "bus p", kind: int = 0, ts_ns: int = 0) -> Packet:
    return Packet(10**18 + ts_ns, "gw", hub, "bus p", "peer", 0, kind, 0, 3, number, 1, message)


def pcapng(path: Path, rows: list[Packet]) -> Path:
    writer = Writer()
    path.write_bytes(writer.head() + b"".join(map(writer.blocks, rows)))
    return path
