"""A plant that goes on while it is audited: what is in journals is not looked at, and nobody is blamed."""

from collections.abc import Sequence
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("pysail")

from bus.wire.envelope import Envelope, wrap
from capture import parquet
from capture.files import capture_file, day_of, days_directory, journal_directory, name_of
from capture.formats.rows import batches
from capture.pcapng import Packet
from capture.schema import META_BOOT, META_GATEWAY, META_VERSION, VERSION, Kind, arrow_schema
from devices.tap.journal import Journal
from pipeline.input.unread import unread
from tests.pipeline.analysis.hand_made import RX, START_NS, TX, frame
from tests.pipeline.processes import audited

EVERY_NS = 100_000_000
FRAMES, RESTARTED, JOURNAL = 120, 60, 80


def rows_of(gateway: str, boot: int, numbers: range) -> list[Packet]:
    """Return what a recorder writes of frames from the hall to CAN: gw-c at the hall's bus, gw-a at the
    bridge. A run that has no more frames ends."""
    seen = [("bus hall", "bus hall", RX)]
    if gateway == "gw-a":
        seen = [("bridge field", "bus hall", RX), ("bridge field", "can", TX)]
    found = list[Packet]()
    for number in numbers:
        message = wrap(frame("motor", str(number)), Envelope(9, number))
        for hub, bus, way in seen:
            at = START_NS + EVERY_NS * number
            row = at, gateway, hub, bus, "peer", int(way), int(Kind.FRAME), 0, boot, len(found), 1, message
            found.append(Packet(*row))
    return found


def end_of(rows: Sequence[Packet]) -> Packet:
    last = rows[-1]
    return last._replace(
        kind=int(Kind.GAP),
        hub="",
        bus="",
        verdict=11,
        cap_seq=last.cap_seq + 1,
        messages=0,
        message=b"not captured",
    )


def written(root: Path, rows: Sequence[Packet], in_journal: bool = False) -> None:
    gateway, boot = rows[0].gateway, rows[0].boot
    schema = arrow_schema({META_VERSION: str(VERSION), META_GATEWAY: gateway, META_BOOT: str(boot)})
    name, made = name_of(boot, rows[0].cap_seq), list(batches(rows, schema))
    if in_journal:
        journal = Journal(journal_directory(root, gateway), name, schema)
        for number, batch in enumerate(made):
            journal.add(batch, number)
        journal.sync()
        journal.close()
        return
    path = capture_file(root, day_of(rows[0].ts_ns), gateway, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write(path, schema, made)


def test_a_gateway_that_has_just_started_again_has_lost_nothing(tmp_path: Path) -> None:
    """Its run before has ended and is in a file; the rows of this one are in a journal."""
    before, now = rows_of("gw-a", 5, range(RESTARTED)), rows_of("gw-a", 6, range(RESTARTED, FRAMES))
    written(tmp_path, [*before, end_of(before)])
    heard = rows_of("gw-c", 7, range(FRAMES))
    written(tmp_path, [*heard, end_of(heard)])
    written(tmp_path, now, in_journal=True)
    assert unread(days_directory(tmp_path)) == [("gw-a", now[0].ts_ns, now[-1].ts_ns)]
    assert unread(tmp_path) == []
    found = audited(tmp_path, "--engine", "sail")
    assert {(row["kind"], row["gateway"]): row["count"] for row in found["summary"]} == {
        ("not captured", "gw-a"): FRAMES - RESTARTED
    }
    assert "the last rows of gw-a are in no file yet" in found["verdict"]["text"]
    assert found["verdict"]["color"] == "amber"


@pytest.mark.parametrize("gateway", ["gw-a", "gw-c"])
def test_a_gateway_that_records_on_after_another_has_stopped_has_lost_nothing(
    tmp_path: Path, gateway: str
) -> None:
    for name in ("gw-a", "gw-c"):
        rows = rows_of(name, 5, range(FRAMES))
        if name == gateway:
            some = [row for row in rows if row.ts_ns < START_NS + EVERY_NS * JOURNAL]
            written(tmp_path, some)
            written(tmp_path, rows[len(some) :], in_journal=True)
        else:
            written(tmp_path, [*rows, end_of(rows)])
    found = audited(tmp_path, "--engine", "sail")
    assert {row["kind"] for row in found["summary"]} <= {"not captured"}
    assert found["verdict"]["color"] != "red"
