"""What is sent again at a takeover says so, for the call alone and by way of joined hubs."""

from bridges.bridge import Bridge
from bridges.policy import Policy
from bus.hub import Hub
from bus.patch import join
from bus.replaying import is_replayed
from bus.wire.batch import Batch, from_payloads
from tests.bridges.support import FRAME, RecordingPipe


class Asking(RecordingPipe):
    """A pipe that notes of each batch whether it is sent again."""

    def __init__(self) -> None:
        super().__init__("journal")
        self.found = list[bool]()

    def send(self, batch: Batch) -> None:
        super().send(batch)
        self.found.append(is_replayed())


def test_a_bus_behind_a_side_hears_that_frames_are_sent_again() -> None:
    bus, bridge, heard = Hub("shop"), Bridge("line", 5), Asking()
    side, other = bridge.side("bus", Policy(opaque=True)), bridge.side("can", Policy())
    join(bus, side, "line")
    bus.attach(heard)
    side.replay(from_payloads([FRAME]), None)
    other.publish(from_payloads([FRAME]))
    assert heard.found == [True, False]
    assert heard.messages == [FRAME, FRAME]
    assert not is_replayed()
