"""The log of a long drive is read back as it was made, and jobs get the first files of the capture."""

from itertools import chain
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("cantools")
pytest.importorskip("pyspark")

from benchmarks import long_drive, signals
from benchmarks.field_files import make
from capture.files import listed
from capture.formats import imports
from capture.frames import items
from capture.reader import read

COUNT = 2000


@pytest.mark.parametrize("key", long_drive.FORMATS)
def test_each_frame_of_a_log_is_imported(key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_drive, "_CHUNK", 300)
    make(tmp_path / "log", key, long_drive.frames(COUNT))
    imports.imported(tmp_path / "log", tmp_path, "car")
    found = [(packet.ts_ns, packet.message.partition(b":")[2]) for packet in read(tmp_path)]
    due = [(part.ts_ns.tolist(), items(part).to_pylist()) for part in long_drive.frames(COUNT)]
    times, data = (chain.from_iterable(column) for column in zip(*due, strict=True))
    assert found == list(zip(times, data, strict=True))


def test_the_first_files_have_as_many_frames_as_are_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signals, "_FILE", 300)
    monkeypatch.setattr(signals, "_BATCH", 100)
    signals.write(tmp_path, COUNT)
    long_drive.first_files(tmp_path, tmp_path / "few", 700)
    few = [path.relative_to(tmp_path / "few") for path in listed(tmp_path / "few" / "capture")]
    assert few == [path.relative_to(tmp_path) for path in listed(tmp_path / "capture")][:3]
