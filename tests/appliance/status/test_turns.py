"""A status that is made while the loop turns is the same as one that is made at once."""

import asyncio
import json
from typing import Any

import pytest

from appliance.status.snapshot import snapshot
from appliance.status.turns import as_json, snapshot_in_turns
from tests.appliance.large import LARGE, topology
from tests.helpers.appliances import reloaded, running
from tests.helpers.peers import until
from topologies.loading.loader import loads


def timeless(status: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in status.items() if key != "time_ns"}


async def test_a_status_in_turns_is_that_of_one_turn_and_the_loop_turns_meanwhile() -> None:
    async with running(topology(LARGE)) as appliance:
        await until(lambda: bool(appliance.monitor.rates.now))
        turns, making = 0, asyncio.create_task(snapshot_in_turns(appliance.view()))
        while not making.done():
            await asyncio.sleep(0)
            turns += 1
        assert turns > LARGE // 10
        assert timeless(await making) == timeless(snapshot(appliance.view()))


async def test_a_reload_while_a_status_is_made_begins_it_anew() -> None:
    async with running(topology(LARGE)) as appliance:
        making = asyncio.create_task(snapshot_in_turns(appliance.view()))
        for _ in range(3):
            await asyncio.sleep(0)
        assert not making.done()
        reloaded(appliance, loads(topology(2), "t.yaml"))
        status = await making
        assert [part["name"] for part in status["parts"]] == ["hall", "b0", "b1"]
        assert {hub["name"] for hub in status["hubs"]} == {"hall", "b0", "b1"}


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"a": [], "b": {}, "c": None, "d": [1, [2.5, ["x", {"y": [True, "\u00e4"]}]]]},
        {"rows": [{"counts": {"queue full": 1}, "words": ("a", "b")}], '"': "\n"},
    ],
)
def test_a_document_is_encoded_as_by_json(document: dict[str, Any]) -> None:
    assert as_json(document) == json.dumps(document).encode() + b"\n"
