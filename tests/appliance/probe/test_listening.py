"""Listening to a device: its protocol is found, nothing is sent, and its line is as it was."""

import os
import termios
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from appliance.commandline.cli import main
from appliance.probe import listening
from appliance.probe.listening import listened
from bridges.items import EXTENDED
from bridges.media.can.medium import Can
from bridges.media.rtnetlink import FD, LISTEN_ONLY, Controller
from bridges.media.uart.medium import Uart
from bridges.protocols.lines.protocol import Lines
from bridges.protocols.nmea.protocol import Nmea
from bus.errors import BusError
from tests.bridges.support import PtyPair
from topologies.loading.loader import loads

TEXT = b"temp 21.5\r\n" * 4
Out = pytest.CaptureFixture[str]


@pytest.fixture
def sensor(tmp_path: Path) -> Iterator[PtyPair]:
    """Return a line at whose other end text comes without end."""
    line = PtyPair(tmp_path / "tty")
    stop = threading.Event()

    def talk() -> None:
        while not stop.wait(0.002):
            with suppress(BlockingIOError):
                os.write(line.master, TEXT)

    thread = threading.Thread(target=talk, daemon=True)
    thread.start()
    yield line
    stop.set()
    thread.join()
    line.close()


def test_the_protocol_of_a_line_is_proposed(sensor: PtyPair, capsys: Out) -> None:
    assert main(["create", "-", "--gateway", "gw", "--yes", "--listen-to", str(sensor.path)]) == 0
    said = capsys.readouterr()
    (side,) = [one for one in loads(said.out).bridges["media"].at("gw") if one.medium is not None]
    assert side.protocol is not None
    assert side.protocol.key == "lines"
    assert f'# {sensor.path}: lines of text ("temp 21.5") at 115200 baud' in said.out
    assert "Traceback" not in said.err


def test_a_serial_line_is_found_by_a_relative_path_too(
    sensor: PtyPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(sensor.path.parent)
    heard = listened(sensor.path.name, 0.05, lambda _: None)
    assert (heard.protocol, heard.medium.device) == ("lines", str(sensor.path))


def test_nothing_is_sent_and_the_line_is_left_as_it_was(sensor: PtyPair) -> None:
    slave = os.open(sensor.path, os.O_RDWR | os.O_NOCTTY)
    try:
        before = termios.tcgetattr(slave)
        os.close(slave)
        heard = listened(str(sensor.path), 0.05, lambda _: None)
        slave = os.open(sensor.path, os.O_RDWR | os.O_NOCTTY)
        assert termios.tcgetattr(slave) == before
    finally:
        os.close(slave)
    assert heard.protocol == "lines"


@pytest.mark.parametrize(
    ("device", "words"),
    [
        ("/dev/null", "is no serial line"),
        ("/no/such", "No such file"),
        ("can99", "can99"),
        ("can:239.0.0.1?interface=udp_multicast", "name a serial line"),
        ("tcp://127.0.0.1:5025", "name a serial line"),
        ("uart:/dev/ttyUSB0?baud=9600", "name a serial line"),
    ],
)
def test_what_cannot_be_listened_to_is_said_in_one_line(device: str, words: str) -> None:
    with pytest.raises(BusError, match=words):
        listened(device, 0.01, lambda _: None)


def test_a_scale_with_parity_and_lines_that_end_with_cr_is_proposed_as_it_is(
    tmp_path: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = PtyPair(tmp_path / "tty")
    text = b"  12.5 kg\r  12.6 kg\r"
    said = bytes(byte | byte.bit_count() % 2 << 7 for byte in text) * 20
    heard = lambda *_: [said]  # noqa: E731 (a terminal has no parity: this is what a port of 8 bits reads)
    monkeypatch.setattr("appliance.probe.listening._heard", heard)
    assert main(["create", "-", "--gateway", "gw", "--yes", "--listen-to", str(line.path)]) == 0
    line.close()
    (side,) = [
        one for one in loads(capsys.readouterr().out).bridges["media"].at("gw") if one.medium is not None
    ]
    assert side.protocol == Lines(delimiter="\r")
    assert side.medium == Uart(port=str(line.path), baud=115200, data_bits=7, parity="E")


def test_a_gps_is_proposed_with_its_place_as_values(
    tmp_path: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = PtyPair(tmp_path / "tty")
    said = b"$GPGLL,5321.6802,N,00630.3371,W,092750.000,A,A*48\r\n" * 4
    monkeypatch.setattr("appliance.probe.listening._heard", lambda *_: [said])
    assert main(["create", "-", "--gateway", "gw", "--yes", "--listen-to", str(line.path)]) == 0
    line.close()
    text = capsys.readouterr().out
    (side,) = [one for one in loads(text).bridges["media"].at("gw") if one.medium is not None]
    assert side.protocol == Nmea(values=True)


@pytest.mark.parametrize(
    ("chunks", "words"),
    [
        ([], "nothing came at any rate: what answers when it is asked joins by queries or modbus"),
        ([b"\x01\x02\x03"], "nothing that is known here"),
    ],
    ids=["silent", "unknown"],
)
def test_nothing_of_the_bus_is_written_to_a_device_that_is_not_known(
    chunks: list[bytes], words: str, tmp_path: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = PtyPair(tmp_path / "tty")
    monkeypatch.setattr("appliance.probe.listening._heard", lambda *_: chunks)
    assert main(["create", "-", "--gateway", "gw", "--yes", "--listen-to", str(line.path)]) == 0
    line.close()
    text = capsys.readouterr().out
    (side,) = [one for one in loads(text).bridges["media"].at("gw") if one.medium is not None]
    assert words in text
    assert side.denied.outward == ((),)


def test_what_came_at_a_later_rate_alone_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line = PtyPair(tmp_path / "tty")
    heard = iter([[], [b"\x01\x02\x03"]])
    monkeypatch.setattr("appliance.probe.listening._heard", lambda *_: next(heard, []))
    assert "nothing that is known here" in listened(str(line.path), 0.01, lambda _: None).words
    line.close()


@pytest.mark.parametrize(
    ("found", "settings"),
    [
        (Controller("can", LISTEN_ONLY, 250_000), {"bitrate": 250_000, "listen_only": True}),
        (
            Controller("can", FD, 500_000, 2_000_000),
            {"bitrate": 500_000, "data_bitrate": 2_000_000, "fd": True},
        ),
        (Controller("vcan"), {}),
    ],
)
def test_a_can_interface_joins_with_the_rates_and_the_mode_that_it_has(
    monkeypatch: pytest.MonkeyPatch, found: Controller, settings: dict[str, Any]
) -> None:
    for name, made in {"trouble": "", "controller_of": found, "_ids": [0x123, EXTENDED | 0x456]}.items():
        monkeypatch.setattr(listening, name, lambda *_, made=made: made)
    heard = listened("can0", 0.1, lambda _: None)
    assert heard.medium == Can(channel="can0", **settings)
    assert heard.words == "can0: frames of 2 ids: 0x123, 0x00000456x"
