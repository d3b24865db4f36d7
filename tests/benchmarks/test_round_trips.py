"""Round trips: each way can be measured, and an aim is judged by its kind."""

import shutil

import pytest

from benchmarks.report import Results
from benchmarks.round_trips import AIMS, COMPARED, NAMED, WAYS, Rates, Way, judged, once, page, short
from benchmarks.run import Sample

needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler (cc)")
RELAY = next(system for system in COMPARED if system.name == "relay")
FIELDS = ("p50_us", "p99_us", "p999_us")


@needs_compiler
@pytest.mark.parametrize(
    "way", [NAMED["tcp"], NAMED["peers"]._replace(systems=("relay",), idle=3, stalled=0)]
)
def test_times_are_taken_alone_and_in_a_dialogue(way: Way) -> None:
    sample = once(way, RELAY, 0, 0.1, Rates())
    assert sample is not None
    assert sample.trouble == ""
    assert 0 < sample.values["p50_us"] <= sample.values["p99_us"] <= sample.values["p999_us"]


@needs_compiler
@pytest.mark.parametrize("name", ["ipc", "uart"])
def test_ours_can_be_timed(name: str) -> None:
    sample = once(NAMED[name], COMPARED[0], 0, 0.05, Rates())
    assert sample is not None
    assert sample.trouble == ""
    assert sample.values["round_trips"] > 0


def test_a_way_has_its_systems() -> None:
    assert once(NAMED["uart"], RELAY, 0, 0.1, Rates()) is None
    assert {name for way in WAYS for name in way.systems} <= {system.name for system in COMPARED}
    assert {aim.way for aim in AIMS} <= set(NAMED)


def times(way: str, system: str, *p99: float) -> list[Sample]:
    return [
        Sample(way, system, n, dict(zip(FIELDS, (10.0, one, one), strict=True))) for n, one in enumerate(p99)
    ]


def test_an_aim_beside_another_holds_by_the_median_and_one_beside_its_own_p50_in_every_repeat() -> None:
    results = Results([*times("tcp", "ours", 15, 15, 21), *times("tcp", "nng", 50, 50, 50)])
    reached = {(aim.field, aim.system): judged(results, aim)[1] for aim in AIMS if aim.way == "tcp"}
    assert reached == {("p50_us", "nng"): False, ("p99_us", "nng"): True, ("p99_us", "ours"): False}
    assert [aim.field for aim in short(results)] == ["p50_us", "p99_us"]
    text = page(results, WAYS, COMPARED, ("command", "a while"))
    assert text.count("**short**") == 2
    assert "| raw device, tcp: p99 at most 0.4 × nng_device's | 0.30 (0.30..0.42) | reached |" in text
    assert "| bus, ws: p50 at most 1 × nng_device's | – | not measured |" in text
