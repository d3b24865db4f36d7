"""The report from invented samples: medians, ratios within a repeat, targets, trouble, the picture."""

from pathlib import Path

import pytest

from benchmarks.report import TARGETS, Results, Target, load_table, markdown, spread, table, targets
from benchmarks.run import LOADS, Sample
from benchmarks.systems import SYSTEMS

LOAD = next(load for load in LOADS if load.name == "64B")


def speeds(system: str, *values: float, load: str = "64B") -> list[Sample]:
    return [Sample(load, system, i, {"delivered_per_s": value}) for i, value in enumerate(values)]


def row(text: str, start: str) -> list[str]:
    line = next(line for line in text.splitlines() if line.startswith(f"| {start}"))
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_ratios_are_taken_within_a_repeat() -> None:
    results = Results(speeds("ours", 40e6, 20e6, 30e6) + speeds("nng", 1e6, 0.4e6, 0.5e6))
    assert results.compared(Target("", "64B", 40, "nng")) == pytest.approx([40, 50, 60])


def test_a_repeat_in_which_one_side_failed_is_left_out() -> None:
    failed = Sample("64B", "nng", 1, {}, "gone")
    results = Results([*speeds("ours", 40e6, 20e6), *speeds("nng", 1e6), failed])
    assert results.compared(Target("", "64B", 40, "nng")) == pytest.approx([40])


@pytest.mark.parametrize(("ours", "word"), [(40e6, "reached"), (39e6, "**missed**")])
def test_a_target_is_reached_at_its_bound_and_missed_below(ours: float, word: str) -> None:
    text = targets(Results(speeds("ours", ours) + speeds("nng-one", 1e6) + speeds("nng", 0.5e6)))
    assert row(text, "64 B, batched, 3 receivers: 40")[2] == word
    assert row(text, "1 KiB: 7")[2] == "not measured"


@pytest.mark.parametrize(("grown", "word"), [(99.0, "reached"), (101.0, "**missed**")])
def test_a_target_on_a_value_itself(grown: float, word: str) -> None:
    text = targets(Results([Sample("idle", "ours", 0, {"idle_mib": grown})]))
    assert row(text, "10000 idle peers")[2] == word


def test_memory_with_a_stuck_peer_is_a_difference() -> None:
    samples = [
        Sample(name, "ours", 0, {"peak_rss_mib": mib}) for name, mib in (("1KiB", 20), ("1KiB-stuck", 37))
    ]
    assert row(targets(Results(samples)), "One peer stuck")[1:] == ["17", "**missed**"]


def test_every_target_names_a_load_and_a_system_that_exist() -> None:
    loads, systems = {load.name for load in LOADS}, {system.name for system in SYSTEMS}
    assert {target.load for target in TARGETS} | {target.base for target in TARGETS} <= loads | {""}
    assert {name for target in TARGETS for name in target.system.split("+")} <= systems | {""}


def test_a_load_table_shows_medians_ratios_and_trouble() -> None:
    trouble = Sample("64B", "relay", 0, {}, "no C | compiler\nfound")
    closed = Sample("64B", "nats", 0, {"delivered_per_s": 5e6, "loss": 0.5, "closed": 2})
    text = load_table(Results([*speeds("ours", 10e6, 30e6, 20e6), closed, trouble]), LOAD, SYSTEMS)
    assert row(text, "buscoupler device")[1:3] == ["20", ""]
    assert row(text, "nats-server")[1:4] == ["5", "2", "50.0"]
    assert "byte relay (limit): no C / compiler found" in text
    assert "nats-server: 2 receivers closed by the device." in text
    assert "nng_device" not in text


def test_spread_and_table() -> None:
    assert spread([]) == "–"
    assert spread([3.14159]) == "3.14"
    assert spread([300.0, 100.0, 200.0]) == "200 (100..300)"
    assert table(("a", "b"), [("1", "2")]) == "| a | b |\n|---|---:|\n| 1 | 2 |\n"


def test_the_page_has_every_load_and_the_command() -> None:
    text = markdown(Results([]), LOADS, SYSTEMS, "python -m benchmarks", "a while")
    assert "`python -m benchmarks` (a while)" in text
    assert all(f"**{load.title}**\n" in text for load in LOADS)


def test_the_picture_is_a_png(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib comes with the extra `bench`")
    from benchmarks.picture import picture

    round_trip = Sample("roundtrip", "ours", 0, {"p50_us": 10.0, "p99_us": 20.0})
    picture(Results([*speeds("ours", 1e6), round_trip]), LOADS, SYSTEMS, tmp_path / "p.png")
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
