"""The resident Connect server: what it says of its warm-up."""

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from bus import extras
from pipeline.engine import serve


@contextmanager
def ending(port: int, memory: str, log: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a server that ends by itself."""
    with subprocess.Popen(["true"]) as server:
        yield server


def test_without_a_client_it_says_that_nothing_warms_it_up(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(serve, "running", ending)
    monkeypatch.setattr(extras, "find_spec", lambda name: None if name == "grpc" else name)
    assert serve.serve(15_002, "1g", "no.such.rehearsal") == 0
    said = capsys.readouterr().err
    assert "its first jobs will be slow: warming up on a Connect server needs grpcio: run " in said
