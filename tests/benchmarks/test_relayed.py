"""The comparison with ser2net: all frames come out of each gateway, and the page marks what missed."""

import shutil

import pytest

from benchmarks.relayed.__main__ import LOADS, measure
from benchmarks.relayed.report import page
from benchmarks.relayed.systems import GATEWAYS, Gateway
from benchmarks.run import Sample

BY_NAME = {load.name: load for load in LOADS}
NOW = GATEWAYS[-1]


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler (cc)")
@pytest.mark.parametrize(
    ("gateway", "load"),
    [
        (gateway, f"can-{load}" if gateway.line == "can" else load)
        for gateway in GATEWAYS
        for load in ("up-10", "down-10")
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_all_frames_come_out(gateway: Gateway, load: str) -> None:
    if gateway.missing():
        pytest.skip(gateway.missing())
    sample = measure(BY_NAME[load], gateway, 0, 0.2)
    assert sample.trouble == ""
    assert sample.values["lost"] == 0
    assert 0 < sample.values["p50_us"] <= sample.values["p99_us"]


@pytest.mark.parametrize(("ours", "word"), [(1.1, "reached"), (1.3, "**missed**")])
def test_the_page_says_what_was_missed(ours: float, word: str) -> None:
    load = BY_NAME["up-90"]
    values = {"cores": 0.1, "p50_us": 50.0, "p99_us": 80.0, "lost": 0}
    samples = [
        Sample(load.name, "ours", 0, values | {"cores": ours * 0.1}),
        Sample(load.name, "bytes", 0, values),
        Sample(load.name, NOW.name, 0, values),
    ]
    text = page(samples, [load], GATEWAYS, "command", "once")
    row = next(line for line in text.splitlines() if "alone: processor" in line)
    assert row == f"| each frame alone: processor time: 1.2 times at most | {ours:.3g} | 1 | {word} |"


def test_what_lost_frames_has_no_figures() -> None:
    samples = [Sample("up-90", "ours", 0, {"cores": 0.1, "p50_us": 1.0, "p99_us": 1.0, "lost": 1})]
    assert "| frames | – | – | – |" in page(samples, [BY_NAME["up-90"]], GATEWAYS, "command", "once")
