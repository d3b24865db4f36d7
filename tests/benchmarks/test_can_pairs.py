"""The socket that stands for a CAN bus: the other hears a frame, and its sender hears it with a mark."""

import socket
from pathlib import Path

from benchmarks.can_pairs import wire
from bridges.media.can.socketcan import pack_frame
from tests.rigs.can_packets import MARK, MARKED


def test_both_hear_a_frame_and_its_sender_with_the_mark(tmp_path: Path) -> None:
    raw = pack_frame((0x123, b"abc", 0))
    with wire(tmp_path / "can0"):
        ends = [socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(2)]
        for end in ends:
            end.connect(str(tmp_path / "can0"))
            end.settimeout(5)
        for end, other in (ends, ends[::-1]):
            end.send(raw)
            assert other.recv(100) == raw
            marked = end.recv(100)
            assert marked[MARKED] == raw[MARKED] | MARK
            assert marked[:MARKED] + marked[MARKED + 1 :] == raw[:MARKED] + raw[MARKED + 1 :]
        for end in ends:
            end.close()
