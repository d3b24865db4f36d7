"""The log of a gateway is recorded by the kind `log`, and the job shows each of its lines once."""

import asyncio
import logging
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.helpers.ports import free_port

pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")

from bus.logs import Line, read_line
from bus.wire.batch import from_payloads
from bus.wire.frame import PUB, pack
from devices.child import settle
from pipeline.analysis.audit.findings import audit
from pipeline.analysis.logs import lines
from pipeline.engine.choice import SAIL, SPARK
from pipeline.input import read
from pipeline.jobs import find
from pipeline.jobs.record import OpenCapture
from pipeline.output.tables import Progress
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
devices:
  journal: {{on: gw, log: [hall, yard], directory: "{directory}", yields: false}}
logs: [hall, yard]
"""
log = logging.getLogger("buscoupler.tests")


async def recorded(text: str) -> None:
    """Say lines of all levels on two buses that one recorder hears, and what is no line on one of them."""
    appliance = appliance_of(loads(text, "t.yaml"), "gw")
    appliance.open(asyncio.get_running_loop())
    hall = str(appliance.topology.buses["hall"].listen[0].url)
    try:
        async with member(hall) as (hub, ear):
            hub.publish(
                from_payloads([pack(PUB, (1,)), Line(7, "error", "program", "mine", "by hand").frame()])
            )
            log.warning("a valve is stuck")
            log.critical("the plant is on fire")
            await until(lambda: len([m for m in ear.messages if read_line(m)]) == 3)
    finally:
        appliance.close()


@pytest.mark.engines(SPARK, SAIL)
def test_the_job_shows_each_line_once(spark: "SparkSession", tmp_path: Path) -> None:
    asyncio.run(recorded(TEXT.format(free_port(), free_port(), directory=tmp_path)))
    assert settle(20)
    directory = read.root(str(tmp_path))
    rows = read.read(spark, directory)
    assert rows.where("size(tokens) = 1").count() == 0  # other frames are not recorded
    found = [(row.level, row.source, row.logger, row.text) for row in lines(rows).collect()]
    assert found == [
        ("critical", "gw", "buscoupler.tests", "the plant is on fire"),
        ("warning", "gw", "buscoupler.tests", "a valve is stuck"),
        ("error", "program", "mine", "by hand"),
    ]
    job = find("logs")
    options = job.parsed(str(tmp_path), "--level", "error")
    assert job.tables is not None
    (table,) = job.tables(options, OpenCapture(spark, directory, Progress(quiet=True)))
    assert [row.level for row in table.frame.collect()] == ["critical", "error"]
    assert audit(rows).summary.collect() == []
