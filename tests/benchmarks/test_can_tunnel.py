"""What the tunnel over CAN counts."""

from benchmarks.tunnel import Flow
from bridges.media.can.socketcan import pack_frame


def test_lost_doubled_late_and_echoed_frames_are_told_apart() -> None:
    flow = Flow(0)
    zero, one, two, _ = (flow.frame() for _ in range(4))
    for raw in (zero, two, one, two, pack_frame((0x400, b"", 0)), b"noise"):
        flow.hear(raw)
    assert flow.words([]) == "4 sent, 1 lost, 0 unheard, 1 doubled, 1 out of order, 2 echoed"
    assert not flow.is_clean
    flow.begin()
    assert flow.words([]) == "0 sent, 0 lost, 0 unheard, 0 doubled, 0 out of order, 0 echoed"
    assert flow.is_clean


def test_what_is_lost_while_nobody_listens_is_told_apart() -> None:
    flow = Flow(0)
    frames = [flow.frame(at_s) for at_s in (1.0, 1.0, 2.0, 2.0, 3.0, 3.5)]
    for raw in (frames[0], frames[3], frames[5]):
        flow.hear(raw)
    assert flow.lost() == [1.0, 2.0, 3.0]
    assert flow.words([(1.9, 3.0)]).startswith("6 sent, 1 lost, 2 unheard, ")
