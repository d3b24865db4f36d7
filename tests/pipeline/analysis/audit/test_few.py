"""What an audit says of few suspects, which it judges in Python, is what its plans for many say."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")

from pyspark.sql import Row

from pipeline.analysis.audit import few, marks
from pipeline.analysis.audit.findings import audit
from pipeline.cache import release
from pipeline.engine.choice import SAIL
from pipeline.input import read as capture
from pipeline.input.span import WHOLE, Span
from tests.pipeline.analysis.hand_made import Capture
from tests.pipeline.analysis.stand_ins import stood_in
from tests.pipeline.analysis.standby import Plant
from tests.rigs.planted import HEARTBEAT, START_NS, generate, plan_of
from tests.rigs.planted.exact import hard

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.engines(SAIL)

FAULTY: Final[dict[str, Any]] = {
    "rate": 400.0, "lost": 0.02, "doubled": 0.01, "echoed": 0.01, "aged": 0.01, "holes": 1,
}  # fmt: skip
PLANS: Final = {
    "envelopes": plan_of("all", 12_000, **FAULTY),
    "envelopes on trunks, bridges side by side, late frames": replace(hard(20_000, "trunk"), **FAULTY),
    "a heartbeat": plan_of(HEARTBEAT, 12_000, **FAULTY),
}
HARD: Final = list(PLANS)[1]
CUT_NS: Final = START_NS + 2_345_678_901
PARTS: Final = [(name, WHOLE) for name in PLANS] + [(HARD, Span(CUT_NS, None)), (HARD, Span(None, CUT_NS))]


HAND_MADE: Final[dict[str, Callable[[], Capture]]] = {
    "a standby that sent again": lambda: Plant(has_rows=True).made,
    "a standby in an older capture": lambda: Plant(has_rows=False).made,
    "equal readings of a standby": lambda: Plant(has_rows=False, equal=7).made,
    "a stand-in with another envelope": lambda: stood_in(range(10, 20), heard_twice=3),
}


@pytest.fixture(autouse=True)
def small() -> Iterator[None]:
    yield
    release()


def both(rows: "DataFrame", patch: pytest.MonkeyPatch, span: Span = WHOLE) -> Iterator[dict[str, list[Row]]]:
    """Yield the tables of an audit, judged in Python and by plans."""
    for most in (few.MOST, 0):
        patch.setattr(few, "MOST", most)
        tables = audit(rows, span=span)._asdict()
        yield {name: sorted(table.collect(), key=repr) for name, table in tables.items()}


@pytest.mark.parametrize(("name", "part"), PARTS)
def test_they_say_the_same_of_planted_faults(
    spark: "SparkSession", planted: dict[str, Path], monkeypatch: pytest.MonkeyPatch, name: str, part: Span
) -> None:
    rows = capture.read(spark, capture.root(str(planted[name])))
    some, many = both(part.widened(3_000_000_000).select(rows), monkeypatch, part)
    assert some == many
    assert len(some["findings"]) > 20


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    made = {sort: tmp_path_factory.mktemp("planted") for sort in PLANS}
    for sort, directory in made.items():
        generate(directory, PLANS[sort])
    return made


@pytest.mark.parametrize("name", HAND_MADE)
def test_they_say_the_same_of_what_is_hand_made(
    spark: "SparkSession", monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    some, many = both(HAND_MADE[name]().rows(spark), monkeypatch)
    assert some == many


def test_times_that_are_too_many_are_left_to_the_plans(
    spark: "SparkSession", planted: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = capture.read(spark, capture.root(str(planted["a heartbeat"])))
    some = audit(rows).summary.collect()
    monkeypatch.setattr(marks, "collected", lambda frame, most: None)
    assert sorted(some, key=repr) == sorted(audit(rows).summary.collect(), key=repr)
