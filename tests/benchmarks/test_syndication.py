"""The figures of the syndication broker: the load counts what it does, the page says what was missed."""

import shutil
from itertools import product
from typing import Any

import pytest

pytest.importorskip("msgpack")
pytest.importorskip("lark")
pytest.importorskip("re2")

from benchmarks.syndication.__main__ import Results, page
from benchmarks.syndication.rig import OURS, OURS_FIRST, PACED, PLAIN, SUBSCRIBERS, evaluation, fanout

built = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler (cc)")
SECONDS = 0.05
RUN = {
    "delivered_per_s": 100000.0, "core": 0.5, "cpu_us": 5.0, "loss": 0.0, "sent": 10.0, "delivered": 9.0,
    "changes": 1.0, "differences": 1.0, "errors": 0.0, "mean_us": 500.0, "p50_us": 1.0, "p95_us": 2.0,
    "p99_us": 2500.0, "worst_us": 9.0, "late_p50_us": 1.0, "late_p99_us": 3.0, "producers_mib": 4.0,
    "queries_mib": 8.0, "all_mib": 50.0,
}  # fmt: skip


@built
@pytest.mark.parametrize("system", [OURS, PLAIN], ids=lambda system: system.name)
def test_every_publication_reaches_ten_subscribers(system: Any) -> None:
    values = fanout(system, PACED, SECONDS)
    assert values["delivered_per_s"] > SUBSCRIBERS
    assert (values["loss"], values["errors"], values["differences"]) == (0, 0, 0)


@built
def test_each_publication_of_the_evaluation_reaches_its_subscriber_once() -> None:
    values = evaluation(OURS, 1.5, 100)
    assert values["delivered"] == values["sent"] > 360
    assert values["changes"] > 100
    assert values["differences"] > 360
    assert values["errors"] == 0


def test_the_page_says_what_was_missed() -> None:
    names = product((PACED, "single", "batched"), ("ours", "plain", "bus"))
    fanout = {name: [RUN, RUN] for name in names}
    changes = [{10: 10.0, 100: 11.0, 1000: 12.0, 10_000: growth} for growth in (13.0, 20.0, 30.0)]
    text = page(Results({OURS.name: [RUN], OURS_FIRST.name: [RUN]}, fanout, changes, [RUN]), 2, 1.0)
    assert "| Evaluation, mean: less than 1 ms | 500 µs | reached |" in text
    assert "| Evaluation, before other processes, p99: less than 2 ms | 2500 µs | **missed** |" in text
    assert "| A change, 10 to 10,000 queries: 1.5 times at most | 2 (1.3..3) | **missed** |" in text
    assert "wrong subscriber: 2 in all runs" in text
    assert "| 4096 subscribers | 8.0 | 2.0 |" in text
