"""Each interface of python-can that runs here: a far end that goes is noticed, told, and dialled again."""

import os
import resource
from asyncio import get_running_loop
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from time import process_time
from typing import Any

import pytest

from bridges.media.can.codec import can_id, segment
from bridges.media.can.link import CanLink
from bridges.media.can.source import UNFRAMED_BYTES
from bus.hub import Hub
from tests.bridges.media.can.far_ends import FAR_ENDS, Adapter, Server
from tests.bridges.support import MESSAGE, PtyPair, frame, recorder, say
from tests.helpers.links import can_link
from tests.helpers.peers import until
from tests.helpers.ports import free_port

IDENTIFIER = can_id(0x1234, 9)
FD_SETSIZE = 1024


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


@contextmanager
def many_descriptors() -> Iterator[None]:
    """Have so many files open that the next descriptors are above those that `select.select` takes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(2 * FD_SETSIZE, hard), hard))
    taken = [os.open(os.devnull, os.O_RDONLY)]
    try:
        while taken[-1] < FD_SETSIZE:
            taken.append(os.dup(taken[0]))
        yield
    finally:
        for number in taken:
            os.close(number)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def test_it_works_when_many_files_are_open(
    far: Adapter | Server, request: pytest.FixtureRequest
) -> None:
    hub = Hub()
    heard = recorder(hub)
    with many_descriptors():
        async with opened(far, interface_of(request), hub) as link:
            for data in segment(MESSAGE, 7):
                far.send((IDENTIFIER, data))
            await until(lambda: heard.messages == [MESSAGE])
            say(hub, heard, frame(30))
            await until(lambda: link.stats.sent == 1)
            assert link.losses == 0


async def test_two_by_multicast_hear_each_other_when_many_files_are_open() -> None:
    near, distant, options = Hub(), Hub(), {"port": free_port(), "hop_limit": 0}
    mine, theirs = recorder(near), recorder(distant)
    with many_descriptors(), ExitStack() as stack:
        links = [can_link("udp_multicast", "239.74.163.2", node, fd=True, options=options) for node in (1, 2)]
        for link, hub in zip(links, (near, distant), strict=True):
            link.open(hub, get_running_loop())
            stack.callback(link.close)
        await until(lambda: all(link.state == "up" for link in links))
        say(near, mine, MESSAGE)
        await until(lambda: theirs.messages == [MESSAGE])
        say(distant, theirs, frame(30))
        await until(lambda: mine.messages == [frame(30)])
        assert [link.losses for link in links] == [0, 0]
