"""What came on a CAN bus: our own frames are confirmed, others are messages, and a tap is shown both."""

from collections.abc import Sequence

from bridges.items import ERROR, OWN, CanFrame
from bridges.media.can.echo import Echoes
from bridges.media.can.medium import Can
from bridges.media.can.shared import Shared
from bridges.media.can.socketcan import pack_frame
from bridges.media.can.state import BusState
from bridges.media.can.voice import FAULTS_MAX, Inbound
from bridges.media.shedding import Shed
from bridges.packed import CLASSIC_BYTES, Packed, joined
from bus.ledger import Stats

OURS, OTHERS = (0x1, b"ours", 0), (0x2, b"others", 0)


class Heard(Inbound):
    """A receiving half to which the data of each frame are a message. `confirmed` are our own frames."""

    def __init__(self) -> None:
        self.confirmed, self.shared = list[CanFrame](), shared()
        super().__init__(self.shared, self.confirmed.extend, self.confirmed.append)

    def _messages(self, now: float, frames: Sequence[CanFrame], stamps_ns: Sequence[int]) -> list[bytes]:
        if isinstance(frames, Packed):
            frames, self.came_ns = self._without_own(frames, stamps_ns)
        return [bytes(data) for _, data, _ in frames]


def shared() -> Shared:
    return Shared("can", Can(channel="can0"), Stats(), Shed(), 6, BusState(), Echoes())


def packed(*frames: CanFrame, owns: tuple[int, ...]) -> Packed:
    made = joined([pack_frame(frame) for frame in frames])
    assert isinstance(made, Packed)
    return Packed(made.data, CLASSIC_BYTES, owns)


def test_frames_of_others_are_told_with_their_times_and_our_own_are_confirmed() -> None:
    for stamps_ns, came_ns in ((5, 6), [6]), ((), ()):
        heard = Heard()
        assert heard.messages(0.0, packed(OURS, OTHERS, owns=(OWN, 0)), stamps_ns) == [b"others"]
        assert heard.came_ns == came_ns
        assert [frame[:2] for frame in heard.confirmed] == [OURS[:2]]


def test_a_tap_is_shown_what_others_sent_and_what_is_confirmed_as_ours() -> None:
    heard, shown = Heard(), list[tuple[Sequence[bytes], bool, Sequence[int]]]()
    heard.shared.wire.tap(lambda *one: shown.append(one))
    ours = (*OURS[:2], OWN)
    heard.messages(0.0, [ours, OTHERS, (ERROR | 4, bytes(8), 0)], [5, 6, 7])
    assert shown == [([pack_frame(ours)], True, [5]), ([pack_frame(OTHERS)], False, [6])]


def test_a_bus_is_opened_again_after_unreadable_input_with_no_frame_of_ours_between() -> None:
    heard = Heard()
    for _ in range(2):
        assert not any(heard.note_fault() for _ in range(FAULTS_MAX))
        assert heard.confirms(packed(OURS, owns=(OWN,)))
    assert not any(heard.note_fault() for _ in range(FAULTS_MAX))
    assert heard.note_fault()
