"""What a loop shares is one thing, and goes with the loop."""

import asyncio
import gc
from asyncio import AbstractEventLoop
from collections.abc import Callable
from weakref import ref

import pytest

from bridges.media.can.beats import beats_of
from bus.transports.chores import queues_of

SHARED: list[Callable[[AbstractEventLoop], object]] = [beats_of, queues_of]


@pytest.mark.parametrize("shared", SHARED, ids=["beats", "queues"])
def test_a_loop_has_one_and_the_next_loop_lets_it_go(shared: Callable[[AbstractEventLoop], object]) -> None:
    loop = asyncio.new_event_loop()
    one = ref(loop)
    assert shared(loop) is shared(loop)
    beats_of(loop).look_at(loop.time() + 60, loop.stop, is_first=True)  # never comes
    loop.close()
    following = asyncio.new_event_loop()
    for known in SHARED:
        known(following)
    following.close()
    del loop
    gc.collect()
    assert one() is None
