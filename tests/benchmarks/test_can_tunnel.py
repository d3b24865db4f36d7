"""What the tunnel over CAN counts."""

from benchmarks.can_tunnel import Flow
from bridges.media.can.socketcan import pack_frame


def test_lost_doubled_late_and_echoed_frames_are_told_apart() -> None:
    flow = Flow(0)
    zero, one, two, _ = (flow.frame() for _ in range(4))
    for raw in (zero, two, one, two, pack_frame((0x400, b"", 0)), b"noise"):
        flow.hear(raw)
    assert flow.words == "4 sent, 1 lost, 1 doubled, 1 out of order, 2 echoed"
    flow.begin()
    assert flow.words == "0 sent, 0 lost, 0 doubled, 0 out of order, 0 echoed"
