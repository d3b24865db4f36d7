"""The listener and its limits, on the service of lines."""

from collections.abc import AsyncIterator

import pytest

from bus.serving.limits import Limits
from tests.bus.serving.services import Lines
from tests.bus.serving.serving_house import FAST, House
from tests.helpers.peers import until


@pytest.fixture
async def house() -> AsyncIterator[House[Lines]]:
    house = House(Lines)
    yield house
    house.close()


@pytest.mark.parametrize("limit", ["heartbeat_s", "idle_s", "queue_bytes", "object_bytes", "connections"])
def test_every_limit_is_above_0(limit: str) -> None:
    with pytest.raises(ValueError, match="above 0"):
        Limits(**{limit: 0})


async def test_an_object_without_an_end_is_cut_off_at_its_bound(house: House[Lines]) -> None:
    service = house.serve(object_bytes=2000)
    fine = await house.come(service.greet() + b"x" * 2000)
    endless = await house.come(service.greet() + b"x" * 2001)
    await until(lambda: endless.gone)
    await fine.say(b"\n" + service.register(1))
    await until(lambda: service.registered == 1)
    assert service.stats.rejected == {"framing": 1, "word": 1}


async def test_other_limits_reach_those_that_are_connected(house: House[Lines]) -> None:
    service = house.serve(heartbeat_s=60.0)
    silent, greeted = await house.come(), await house.come(service.follow(1))
    await until(lambda: service.registered == 1)
    assert service.signs(greeted.heard) == 0
    service.listener.revise(Limits(**{**FAST, "object_bytes": 100}))
    await until(lambda: silent.gone and service.signs(greeted.heard) >= 2)
    assert not greeted.gone
    await greeted.say(101 * b"x")
    await until(lambda: greeted.gone)
    assert service.stats.rejected == {"nothing said": 1, "framing": 1}


async def test_at_the_end_all_are_let_go_and_nobody_is_accepted(
    house: House[Lines],
) -> None:
    service = house.serve()
    guest = await house.come(service.greet())
    service.close()
    await until(lambda: guest.gone)
    with pytest.raises(ConnectionRefusedError):
        await house.come()


async def test_only_so_much_is_read_at_once(house: House[Lines]) -> None:
    service = house.serve(read_bytes=64)
    guest, lines = await house.come(service.greet()), 20 * b"join all\nhello\n"
    await guest.say(lines + b"say all " + 100 * b"x" + b"\n")
    await until(lambda: 100 * b"x" in guest.heard)
    for wrong in (0, 1 << 20):
        with pytest.raises(ValueError, match="read_bytes"):
            Limits(read_bytes=wrong)
