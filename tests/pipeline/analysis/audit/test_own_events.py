"""A flawless run with events on its buses has no fault: they are traffic of the gateway itself."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")

from appliance.compose import Appliance
from bus.wire.batch import from_payloads
from bus.wire.frame import PUB, pack
from bus.wire.pattern import Pattern
from pipeline.analysis.audit.findings import audit
from pipeline.engine.choice import SAIL
from pipeline.input import read
from tests.devices.tap.tap_support import member
from tests.helpers.peers import until
from tests.pipeline.analysis.two_buses import recorded

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MORE = """\
bridges:
  joint: {{on: gw, join: [{{bus: hall}}, {{bus: yard, allow: [[], buscoupler/event]}}]}}
devices:
  recorder: {{on: gw, tap: [hall, yard, joint], directory: "{directory}", yields: false}}
events: [hall, yard]
"""
FRAMES = 300


async def frames_and_events(appliance: Appliance, hall: str, yard: str) -> int:
    """Send frames of a member and events of the gateway. Return how many messages a listener heard."""
    async with member(hall) as (hub, _), member(yard) as (_, ear):
        await until(lambda: sum(len(part.hub.pipes) for part in appliance.parts.values()) == 6)
        for number in range(FRAMES):
            hub.publish(from_payloads([pack(PUB, Pattern("a"), b"%d" % number)]))
            if number % 100 == 0:
                appliance.monitor.record("takeover", "fridge", "on purpose")
        wanted = FRAMES + 3
        await until(lambda: len(ear.messages) >= wanted)
        return len(ear.messages)


@pytest.mark.engines(SAIL)
def test_a_flawless_run_with_events_has_no_fault(spark: "SparkSession", tmp_path: Path) -> None:
    heard = recorded(MORE, tmp_path, frames_and_events)
    found = audit(read.read(spark, read.root(str(tmp_path))))
    assert found.summary.collect() == []
    assert [row.frames for row in found.totals.collect()] == [FRAMES]
    assert heard >= FRAMES + 3
