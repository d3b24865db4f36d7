"""Jobs that look at what came since the last time, and at spans of time, as commands."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("pysail")

from pipeline.errors import PipelineError
from pipeline.input import since
from tests.pipeline.processes import Done, in_turn
from tests.rigs.planted import Plan, generate

pytestmark = pytest.mark.timeout(300)  # several commands, each with an engine of its own


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A quarter of an hour of frames."""
    directory = tmp_path_factory.mktemp("capture")
    generate(directory, Plan(rows=9_000, rate=1.0, gap_s=5.0))
    return directory


def audits(capture: Path, state: Path, *asked: Sequence[str]) -> list[Done]:
    """Run an audit for each of several lists of options, one after the other, with notes in `state`."""
    words = ["audit", str(capture), "--engine", "sail", "-q"]
    return in_turn(*([*words, *more] for more in asked), more={"XDG_STATE_HOME": str(state)})


def frames(done: Done) -> int:
    return int(done.tables["totals"][0]["frames"])


def test_each_frame_is_looked_at_once(capture: Path, tmp_path: Path) -> None:
    whole, new, again = audits(capture, tmp_path, ["--json"], ["--json", "--since-last"], ["--since-last"])
    every, first = frames(whole), frames(new)
    assert 0 < first < every
    assert (again.status, again.out or again.said) == (0, "nothing new since the last time\n")
    to_ns = since.load(next(tmp_path.rglob("*.json")))
    assert to_ns is not None
    there = datetime.fromtimestamp(to_ns // 10**9, UTC).replace(microsecond=to_ns // 1000 % 10**6).isoformat()
    elsewhere = tmp_path / "other"
    rest, other = audits(capture, elsewhere, ["--json", "--from", there], ["--json", "--since-last"])
    assert abs(frames(rest) + first - every) <= 1  # times have microseconds
    assert frames(other) == first


def test_it_is_said_in_one_way(capture: Path, tmp_path: Path) -> None:
    (done,) = audits(capture, tmp_path, ["--since-last", "--from", "2026-01-01"])
    assert (done.status, done.out or done.said) == (
        1,
        "buscoupler: --since-last: give no --from or --to with it\n",
    )


def test_one_gateway_alone_and_all_have_notes_of_their_own(tmp_path: Path) -> None:
    both = since.note_of("audit", "/c", ("gw-b", "gw-a"))
    assert both == since.note_of("audit", "/c", ("gw-a", "gw-b", "gw-a"))
    assert len({both, since.note_of("audit", "/c"), since.note_of("audit", "/c", ("gw-a",))}) == 3


def test_gateways_whose_rows_would_never_be_looked_at_are_known() -> None:
    def file(gateway: str, number: int) -> Path:
        return Path(f"/c/date=2026-11-20/gateway={gateway}/{number}-0.parquet")

    newest = {file("ahead", 1): 900, file("late", 1): 300, file("late", 2): 400, file("even", 1): 500}
    assert since.behind(newest, 500) == {"late": 400}
    assert since.behind(newest, 400) == {}


def test_a_gateway_whose_clock_is_late_is_named(tmp_path: Path) -> None:
    late_ns = -3_600 * 10**9
    generate(tmp_path / "c", Plan(rows=900, rate=1.0, gap_s=5.0, offsets_ns=(0, late_ns, 0, 0)))
    (done,) = audits(tmp_path / "c", tmp_path, ["--since-last"])
    assert sum(since.BEHIND in line for line in done.said.splitlines()) == 1


def test_a_note_that_is_none_is_named(tmp_path: Path) -> None:
    note = tmp_path / "note.json"
    note.write_text("[]")
    with pytest.raises(PipelineError, match="not a note of --since-last; remove it"):
        since.load(note)
    note.unlink()
    assert since.load(note) is None
    since.store(note, "audit", "/somewhere", 7)
    assert since.load(note) == 7
