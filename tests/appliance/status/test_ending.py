"""The last counts of a process: those that its links made when they closed, beside the peers it had."""

import asyncio
from functools import partial

import pytest

from appliance.process.serve import serve
from appliance.status.ending import ended
from appliance.status.ledger import say_ledger
from bus.hub import Hub
from tests.bridges.support import RecordingPipe, say


class Device:
    """A service with a link that has heard half a frame, which it counts as none when it closes."""

    def __init__(self) -> None:
        self.hub, self.pipe = Hub("plant"), RecordingPipe("uart:/dev/ttyUSB0", "uart:/dev/ttyUSB0")

    def open(self, loop: asyncio.AbstractEventLoop) -> None:
        self.hub.attach(self.pipe)
        say(self.hub, self.pipe, b"x")

    async def opened(self) -> None: ...

    def hubs(self) -> tuple[Hub, ...]:
        return (self.hub,)

    def close(self) -> None:
        self.pipe.stats.reject("unfinished")
        self.pipe.stats.noise_bytes += 66
        self.hub.detach(self.pipe)
        late = RecordingPipe("tcp:late", "tcp:late")
        self.hub.attach(late)
        self.hub.detach(late)


def test_what_links_count_when_they_close_is_in_the_last_counts(capsys: pytest.CaptureFixture[str]) -> None:
    device = Device()
    assert serve(device, lambda: None, lambda: partial(say_ledger, ended(device.hubs())), limit_s=0) == 0
    assert capsys.readouterr().out.splitlines() == [
        "ledger of 2 links: balanced",
        "  plant",
        "    tcp:late: in 0, out 0, dropped 0",
        "    uart:/dev/ttyUSB0: in 1, out 0, dropped 0, rejected 1 unfinished, 66 bytes of noise; 1 live",
    ]
