"""The comparison over WebSocket and TLS: ours can be measured on each, and the page marks what missed."""

import shutil
from pathlib import Path

import pytest

from benchmarks.channels import CHANNELS, LOADS, SIZES, SYSTEMS, once, rows
from benchmarks.report import Results
from benchmarks.run import Sample

HEADERS = Path("/usr/include/openssl/ssl.h")
needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler (cc)")
needs_openssl = pytest.mark.skipif(not HEADERS.exists(), reason="Debian package libssl-dev")


@needs_compiler
@needs_openssl
@pytest.mark.parametrize("channel", [channel.name for channel in CHANNELS])
def test_what_arrives_over_each_channel_is_whole(channel: str) -> None:
    load = next(load for load in LOADS if load.name == f"{channel}-64B")
    sample = once(0.05, load, SYSTEMS[0], 0)
    assert sample.trouble == ""
    # Not all of it: on a busy machine the receivers may wait so long that their queues overflow.
    # A batch is counted when all of it has left, and parts of it may be heard before.
    assert 0 < sample.values["delivered"] <= 3 * (sample.values["sent"] + 5000)
    assert sample.values["sampled"] > 0
    assert (sample.values["errors"], sample.values["closed"]) == (0, 0)


@needs_compiler
def test_round_trips_over_a_websocket() -> None:
    load = next(load for load in LOADS if load.name == "ws-roundtrip")
    assert once(0.05, load, SYSTEMS[0], 0).values["round_trips"] > 0


def test_the_table_has_ratios_and_says_what_was_missed() -> None:
    figures = {"ours": (6e6, 3e6), "nng": (1e6, 1.5e6)}
    samples = [
        Sample("ws-64B", system, repeat, {"delivered_per_s": value})
        for system, values in figures.items()
        for repeat, value in enumerate(values)
    ]
    ws = [channel for channel in CHANNELS if channel.name == "ws"]
    assert list(rows(Results(samples), ws, SIZES[:1])) == [
        ["ws", "64 B, batched, 3 receivers", "4.5 (3..6)", "1.25 (1..1.5)", "4 (2..6)", "reached"]
    ]
    samples = [sample._replace(values={"delivered_per_s": 1e6}) for sample in samples]
    assert "**missed**" in next(iter(rows(Results(samples), ws, SIZES[:1])))
