"""The benchmark of signals measures each kind of work on the same frames, in two sizes."""

import re

import pytest

pytest.importorskip("cantools")
pytest.importorskip("pyspark")

from benchmarks import signals


def test_each_work_has_its_cost(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signals, "RUNS", 1)
    signals.main(500)
    out = capsys.readouterr().out
    assert re.findall(r"^ +(\w+) +[\d,]+ ns", out, re.MULTILINE) == 2 * [
        "kernel", "cantools", "sums", "windows", "table",
    ]  # fmt: skip
    assert "1,000 frames" in out
