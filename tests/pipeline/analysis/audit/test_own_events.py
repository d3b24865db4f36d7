"""A flawless run with events on its buses has no fault: they are traffic of the gateway itself."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.helpers.ports import free_port

pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")

from bus.wire.batch import from_payloads
from bus.wire.frame import PUB, pack
from bus.wire.pattern import Pattern
from devices.child import settle
from pipeline.analysis.audit.findings import audit
from pipeline.engine.choice import SAIL
from pipeline.input import read
from tests.devices.tap.tap_support import member
from tests.helpers.appliances import appliance_of
from tests.helpers.peers import until
from topologies.loading.loader import loads

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TEXT = """\
name: two
gateways: {{gw: {{address: 127.0.0.1}}}}
buses:
  hall: {{on: gw, listen: "tcp://127.0.0.1:{0}"}}
  yard: {{on: gw, listen: "tcp://127.0.0.1:{1}"}}
bridges:
  joint: {{on: gw, join: [{{bus: hall}}, {{bus: yard, allow: [[], buscoupler/event]}}]}}
devices:
  recorder: {{on: gw, tap: [hall, yard, joint], directory: "{directory}", yields: false}}
events: [hall, yard]
"""
FRAMES = 300


async def recorded(text: str) -> int:
    """Record frames of a member and events of the gateway. Return how many messages a listener heard."""
    appliance = appliance_of(loads(text, "t.yaml"), "gw")
    appliance.open(asyncio.get_running_loop())
    hall, yard = (str(appliance.topology.buses[name].listen[0].url) for name in ("hall", "yard"))
    try:
        async with member(hall) as (hub, _), member(yard) as (_, ear):
            await until(lambda: sum(len(part.hub.pipes) for part in appliance.parts.values()) == 6)
            for number in range(FRAMES):
                hub.publish(from_payloads([pack(PUB, Pattern("a"), b"%d" % number)]))
                if number % 100 == 0:
                    appliance.monitor.record("takeover", "fridge", "on purpose")
            wanted = FRAMES + 3
            await until(lambda: len(ear.messages) >= wanted)
            return len(ear.messages)
    finally:
        appliance.close()


@pytest.mark.engines(SAIL)
def test_a_flawless_run_with_events_has_no_fault(spark: "SparkSession", tmp_path: Path) -> None:
    heard = asyncio.run(recorded(TEXT.format(free_port(), free_port(), directory=tmp_path)))
    assert settle(20)
    found = audit(read.read(spark, read.root(str(tmp_path))))
    assert found.summary.collect() == []
    assert [row.frames for row in found.totals.collect()] == [FRAMES]
    assert heard >= FRAMES + 3
