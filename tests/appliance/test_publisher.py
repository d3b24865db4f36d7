"""What a process says on a bus of another process: what does not fit while nobody answers is counted."""

import asyncio
from pathlib import Path

from appliance.parts.publisher import WAITING, Publisher
from appliance.parts.site import Site


def record(*_: object, **__: object) -> None:
    """Take an event, and do nothing."""


async def test_frames_that_wait_for_another_process_are_bounded_and_the_rest_is_counted(
    tmp_path: Path,
) -> None:
    publisher = Publisher(Site("gw", tmp_path, record), asyncio.get_running_loop().time)
    publisher.follow({}, ["plant"])
    publisher.publish(["plant"], [b"frame"] * (WAITING + 3))
    publisher.tick(asyncio.get_running_loop())
    (hub,) = publisher.hubs
    assert [one.stats.dropped for one in hub.accounts().values()] == [{"queue full": 3}]
    publisher.close()
