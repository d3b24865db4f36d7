"""Each interface of python-can that runs here: a far end that goes is noticed, told, and dialled again."""

from asyncio import get_running_loop
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from time import process_time
from typing import Any

import pytest

from bridges.media.can.codec import can_id, segment
from bridges.media.can.link import CanLink
from bridges.media.can.source import UNFRAMED_BYTES
from bus.hub import Hub
from tests.bridges.media.can.far_ends import FAR_ENDS, Adapter, Server
from tests.bridges.support import MESSAGE, PtyPair, frame, recorder
from tests.helpers.links import can_link
from tests.helpers.peers import until

IDENTIFIER = can_id(0x1234, 9)


@pytest.fixture(params=list(FAR_ENDS))
async def far(request: pytest.FixtureRequest, line: PtyPair) -> AsyncIterator[Adapter | Server]:
    made = FAR_ENDS[request.param](line)
    await made.come()
    yield made
    await made.go()


@asynccontextmanager
async def opened(far: Adapter | Server, interface: str, hub: Hub) -> AsyncIterator[CanLink]:
    options: dict[str, Any] = far.options | ({"sleep_after_open": 0} if interface == "slcan" else {})
    link = can_link(interface, far.channel, 1, options=options, retry_min_s=0.01, retry_max_s=0.02)
    link.open(hub, get_running_loop())
    try:
        await until(lambda: link.state == "up" and far.joined)
        yield link
    finally:
        link.close()
        assert link.stats.balance() == 0


def interface_of(request: pytest.FixtureRequest) -> str:
    return str(request.node.callspec.params["far"]).partition(" ")[0]


async def test_a_far_end_that_goes_is_noticed_and_found_again(
    far: Adapter | Server, request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture
) -> None:
    hub = Hub()
    heard = recorder(hub)
    async with opened(far, interface_of(request), hub) as link:
        for data in segment(MESSAGE, 7):
            far.send((IDENTIFIER, data))
        await until(lambda: heard.messages == [MESSAGE])
        began_s = process_time()
        await far.go()
        await until(lambda: link.losses == 1)
        assert process_time() - began_s < 2
        assert link.fault.startswith("lost: ") or link.state == "waiting"
        await far.come()
        await until(lambda: link.state == "up" and far.joined)
        for data in segment(frame(30), 8):
            far.send((IDENTIFIER, data))
        await until(lambda: heard.messages == [MESSAGE, frame(30)])
    assert "Traceback" not in caplog.text


async def test_noise_is_counted_and_told_until_frames_come(
    far: Adapter | Server, request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture
) -> None:
    hub = Hub()
    heard = recorder(hub)
    async with opened(far, interface_of(request), hub) as link:
        far.say(b"Welcome to the wrong device!\r\n" * 60)
        await until(lambda: "none a frame" in link.condition)
        assert link.stats.noise_bytes > UNFRAMED_BYTES
        told = [record for record in caplog.records if "none a frame" in record.getMessage()]
        assert len(told) == 1
        for data in segment(MESSAGE, 7):
            far.send((IDENTIFIER, data))
        await until(lambda: heard.messages == [MESSAGE])
        await until(lambda: "none a frame" not in link.condition)
    assert "Traceback" not in caplog.text
