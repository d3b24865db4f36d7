"""The log of a gateway is recorded by the kind `log`, and the job shows each of its lines once."""

import logging
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")

from appliance.compose import Appliance
from bus.logs import Line, read_line
from bus.wire.batch import from_payloads
from bus.wire.frame import PUB, pack
from pipeline.analysis.audit.findings import audit
from pipeline.analysis.logs import lines
from pipeline.engine.choice import SAIL, SPARK
from pipeline.input import read
from pipeline.jobs import find
from pipeline.jobs.record import OpenCapture
from pipeline.output.tables import Progress
from tests.devices.tap.tap_support import member
from tests.helpers.peers import until
from tests.pipeline.analysis.two_buses import recorded

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MORE = """\
devices:
  journal: {{on: gw, log: [hall, yard], directory: "{directory}", yields: false}}
logs: [hall, yard]
"""
log = logging.getLogger("buscoupler.tests")


async def lines_of_all_levels(_: Appliance, hall: str, __: str) -> None:
    """Say lines of all levels on two buses that one recorder hears, and another frame on one of them."""
    async with member(hall) as (hub, ear):
        hub.publish(from_payloads([pack(PUB, (1,)), Line(7, "error", "program", "mine", "by hand").frame()]))
        log.warning("a valve is stuck")
        log.critical("the plant is on fire")
        await until(lambda: len([m for m in ear.messages if read_line(m)]) == 3)


@pytest.mark.engines(SPARK, SAIL)
def test_the_job_shows_each_line_once(spark: "SparkSession", tmp_path: Path) -> None:
    recorded(MORE, tmp_path, lines_of_all_levels)
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
