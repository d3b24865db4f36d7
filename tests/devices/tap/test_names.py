"""Names on their way from the gateway to the file beside its capture."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from capture import names
from capture.files import days_directory
from devices.child import settle
from devices.tap.names import NamesReader, NamesWriter
from devices.tap.recorder import Options, Recorder
from tests.helpers.peers import until


@pytest.fixture
def writer() -> Iterator[NamesWriter]:
    made = NamesWriter()
    yield made
    made.close()


def test_what_is_told_is_stored_once(writer: NamesWriter, tmp_path: Path) -> None:
    reader = NamesReader(writer.descriptor, tmp_path, "gw")
    reader.store()
    assert not list(tmp_path.iterdir())
    writer.write(["fridge", "temp"])
    reader.store()
    writer.write(["temp", "door"])
    assert names.beside(tmp_path) == ["fridge", "temp"]
    reader.store()
    assert names.beside(tmp_path) == ["fridge", "temp", "door"]


def test_what_the_disk_refused_is_stored_the_next_time(writer: NamesWriter, tmp_path: Path) -> None:
    reader = NamesReader(writer.descriptor, tmp_path / "days", "gw")
    (tmp_path / "days").write_text("a file in the way")
    writer.write(["fridge"])
    with pytest.raises(OSError, match="days"):
        reader.store()
    (tmp_path / "days").unlink()
    reader.store()
    assert names.beside(tmp_path / "days") == ["fridge"]


async def test_a_recorder_leaves_names_at_its_start_and_new_ones_at_its_end(tmp_path: Path) -> None:
    recorder = Recorder("r", "gw", tmp_path, Options(ring_bytes=1 << 20, idle=False), ["fridge"])
    recorder.open(asyncio.get_running_loop())
    try:
        await until(lambda: names.beside(days_directory(tmp_path)) == ["fridge"])
        recorder.know(["fridge", "temp"])
    finally:
        recorder.close()
    assert await asyncio.to_thread(settle, 50)
    assert names.beside(days_directory(tmp_path)) == ["fridge", "temp"]
