"""Messages that are no frames in an audit: they go where buses are, and nothing else is expected of them."""

from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")

from bus.wire.envelope import Envelope, wrap
from bus.wire.frame import pack
from capture.pcapng import Packet
from capture.schema import DDL_PARTITIONED, Direction
from pipeline.analysis.audit import findings
from pipeline.engine.choice import SAIL
from pipeline.input.source import row

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.engines(SAIL)
RX, TX = Direction.RX, Direction.TX
FAR = [("bridge b", "bus two", TX), ("bridge b", "can", TX)]


def packets(
    number: int, content: bytes, stamped: bool, onto: list[tuple[str, str, Direction]]
) -> list[Packet]:
    """Return the rows of one message that came from bus one, by way of a bridge."""
    message = wrap(content, Envelope(9, number)) if stamped else content
    seen = [("bus one", "bus one", RX), ("bridge b", "bus one", RX), *onto]
    return [
        Packet(10**18 + 10**7 * number + n, "gw", hub, bus, "peer", int(way), 0, 0, 5, number, 1, message)
        for n, (hub, bus, way) in enumerate(seen)
    ]


def capture(spark: "SparkSession", stamped: bool, lost: int) -> "DataFrame":
    """Frames without tokens go onto a bus and CAN, other messages onto the bus only, `lost` of them not."""
    rows = []
    for number in range(0, 60, 2):
        rows += packets(number, pack(1, (), b"%d" % number), stamped, FAR)
        rows += packets(number + 1, b"hello %d" % number, stamped, [] if number < 2 * lost else FAR[:1])
    return spark.createDataFrame([row(packet) for packet in rows], DDL_PARTITIONED)


@pytest.mark.parametrize("stamped", [False, True])
@pytest.mark.parametrize("lost", [0, 3])
def test_what_field_media_do_not_carry_is_not_lost(spark: "SparkSession", stamped: bool, lost: int) -> None:
    found = findings.audit(capture(spark, stamped, lost))
    faults = [(one.kind, one.segment, one["count"]) for one in found.summary.collect()]
    assert faults == ([("lost", "bus two", lost)] if lost else [])
    (totals,) = found.totals.collect()
    assert totals.frames == 60
    tokens = {one.token for one in found.findings.collect()}
    assert tokens == ({-2} if lost else set())
