"""Transit times: one batch is sampled, a slow link counts late, and nothing stays on the hub."""

import asyncio
from collections.abc import Callable
from functools import partial

from appliance.status.transit import BOUNDS_S, Transit
from bus.hub import Hub
from bus.wire.frame import pack
from tests.helpers.peers import Ear, Slow, until


async def test_a_sample_is_of_one_batch_and_takes_until_a_slow_link_has_sent_it() -> None:
    hub, transit, loop = Hub("h"), Transit(), asyncio.get_running_loop()
    near, far, slow = Ear(hub), Ear(hub), Slow(hub)
    near.link, far.link, slow.link = "near", "far", "slow"
    transit.sample([hub], loop)
    for _ in range(3):
        near.say(pack(1, (7,)))
    assert hub.taps == ()
    await until(lambda: ("h", "near", "far") in transit.pairs)
    assert sum(transit.pairs["h", "near", "far"].counts) == 1
    assert ("h", "near", "slow") not in transit.pairs
    slow.let()
    await until(lambda: ("h", "near", "slow") in transit.pairs)
    told = {one["other"]: one for one in transit.as_records()}
    assert sum(told["slow"]["counts"]) == 1
    assert len(told["slow"]["counts"]) == len(BOUNDS_S) + 1
    assert told["slow"]["sum_s"] >= told["far"]["sum_s"]


async def test_hubs_that_go_and_the_end_leave_no_tap() -> None:
    one, other, transit, loop = Hub("1"), Hub("2"), Transit(), asyncio.get_running_loop()
    transit.sample([one, other], loop)
    transit.sample([other], loop)
    assert (one.taps, len(other.taps)) == ((), 1)
    transit.close()
    assert other.taps == ()


def test_timers_that_fire_early_end_all_the_same() -> None:
    hub, transit, looks = Hub("h"), Transit(lambda: 5.0), list[partial[None]]()

    class Early:
        """A loop whose timers fire at once."""

        def time(self) -> float:
            return 5.0

        def call_soon(self, call: Callable[..., None], *args: object) -> None:
            looks.append(partial(call, *args))

        def call_at(self, _: float, call: Callable[..., None], *args: object) -> None:
            looks.append(partial(call, *args))

    near, slow = Ear(hub), Slow(hub)
    near.link, slow.link = "near", "slow"
    transit.sample([hub], Early())  # type: ignore[arg-type]
    near.say(pack(1, (7,)))
    turns = 0
    while looks and turns < 100:
        looks.pop(0)()
        turns += 1
    assert turns == 1 + len(BOUNDS_S)
    assert sum(transit.pairs["h", "near", "slow"].counts) == 1
