"""Work in steps: a large gateway is looked at in several turns of the loop, and nothing is missed by it."""

import asyncio
from collections.abc import Collection
from typing import Any

import pytest

from appliance.compose import Appliance
from appliance.parts.build import Part
from appliance.plant import presence
from appliance.status.snapshot import brief
from bus.steps import PORTION
from tests.appliance.large import LARGE, topology
from tests.helpers.appliances import reloaded, running
from tests.helpers.peers import until
from topologies.loading.loader import loads


def looked_at(appliance: Appliance) -> set[str]:
    """Return the hubs whose accounts the monitor has read."""
    return set(appliance.monitor.accounts)


async def test_a_small_gateway_is_looked_at_in_one_turn_of_the_loop() -> None:
    async with running(topology(3)) as appliance:
        assert looked_at(appliance) == {"hall", "b0", "b1", "b2"}


async def test_a_large_gateway_is_looked_at_in_several_turns_of_the_loop() -> None:
    async with running(topology(LARGE)) as appliance:
        assert looked_at(appliance) == set()
        await until(lambda: looked_at(appliance) != set())
        assert looked_at(appliance) == {"hall", *(f"b{n}" for n in range(LARGE))}


async def test_a_large_gateway_announces_itself_after_several_turns_of_the_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    portions, told = list[int](), list[set[str]]()

    def counted(parts: Collection[Part], *more: Any) -> dict[str, Any]:
        portions.append(len(parts))
        return brief(parts, *more)

    def announcement(_: object, marks: Collection[str], __: object) -> bytes:
        told.append({*marks})
        return b""

    monkeypatch.setattr(presence, "brief", counted)
    async with running(topology(LARGE, "far: {address: 127.0.0.2}")) as appliance:
        monkeypatch.setattr(appliance.plant, "announcement", announcement)
        await until(lambda: bool(told))
        assert portions == [PORTION, len(appliance.parts) - PORTION]
        assert told[0] >= {part.id for part in appliance.parts.values()}


async def test_a_reload_amid_a_look_begins_it_anew_and_what_it_closes_is_no_event() -> None:
    """A look that went on would find links that are closed, and tell of a fault that nobody has."""
    async with running(topology(LARGE)) as appliance:
        for _ in range(3):  # some links have been looked at, and some have not
            await asyncio.sleep(0)
        reloaded(appliance, loads(topology(LARGE - 2), "t.yaml"))
        await until(lambda: looked_at(appliance) == {"hall", *(f"b{n}" for n in range(LARGE - 2))})
        assert [event.cause for event in appliance.monitor.events if "closed" in event.cause] == []


async def test_the_rows_of_a_bridge_are_made_at_its_changes_only() -> None:
    async with running(topology(1)) as appliance:
        bridge = appliance.parts["bridge b0"]
        rows, watched, links = bridge.rows, bridge.watched, bridge.links
        assert (bridge.rows is rows, bridge.watched is watched, bridge.links is links) == (True, True, True)
        more = topology(1).replace("mode: listen}}]", "mode: listen}}, {udp: {host: 127.0.0.1, port: 9}}]")
        reloaded(appliance, loads(more, "t.yaml"))
        counts = [len(some) for some in (bridge.rows, bridge.watched, bridge.links)]
        assert counts == [1 + len(some) for some in (rows, watched, links)] == [3, 2, 2]
