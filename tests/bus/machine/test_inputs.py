"""What a user names as input may be a pipe or a device that has nothing yet: whoever waits is told."""

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from bus.machine import inputs
from bus.machine.inputs import opened
from capture.formats.source import Source
from capture.names import read
from tests.helpers.peers import until
from topologies.loading.loader import load


def whole(path: Path) -> bytes:
    with opened(path) as file:
        return file.read()


def of_field(path: Path) -> bytes:
    with Source(path) as source:
        return source.read()


TOPOLOGY = b"name: t\ngateways: {gw: {}}\nbuses: {b: {on: gw}}\n"


@pytest.mark.parametrize(
    ("use", "content"),
    [
        (whole, b"x"),
        (load, TOPOLOGY),
        (lambda path: read(path, is_given=True), b"fridge\n"),
        (of_field, b"(1.0) can0 123#11\n"),
    ],
)
async def test_a_pipe_that_nobody_writes_into_is_told_and_read_when_somebody_does(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    use: Callable[[Path], object],
    content: bytes,
) -> None:
    monkeypatch.setattr(inputs, "SILENT_S", 0.0)
    path, found = tmp_path / "pipe", list[object]()
    os.mkfifo(path)
    reading = threading.Thread(target=lambda: found.append(use(path)), daemon=True)
    reading.start()
    await until(lambda: f"{path}: nothing has come from this pipe yet; will go on waiting" in caplog.text)
    path.write_bytes(content)
    await until(lambda: found)


@pytest.mark.parametrize("use", [opened, load, lambda path: read(path, is_given=True), of_field])
def test_a_directory_is_told_at_once(tmp_path: Path, use: Callable[[Path], object]) -> None:
    with pytest.raises(Exception, match="Is a directory"):
        use(tmp_path)


@pytest.mark.parametrize("use", [whole, lambda path: read(path, is_given=True)])
def test_a_device_that_has_all_is_not_waited_for(
    caplog: pytest.LogCaptureFixture, use: Callable[[Path], object]
) -> None:
    assert not use(Path("/dev/null"))
    assert not caplog.text
