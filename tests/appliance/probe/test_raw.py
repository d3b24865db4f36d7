"""CAN frames of files put on a wire again, and the word that a real one needs."""

import asyncio
import os
import pty
from pathlib import Path

import can
import pyarrow as pa
import pytest

from appliance.commandline.cli import main
from appliance.probe import live
from appliance.probe.cars import cars_of
from appliance.probe.endpoint import parse_endpoint
from appliance.probe.live import reality
from appliance.probe.raw import Choice, survey
from bridges.media.rtnetlink import Controller
from bus.errors import LinkError
from capture.files import CaptureError
from capture.formats.exports import FramePlace
from capture.formats.table import BY_KEY
from tests.bridges.protocols.dbc.dbc_support import CAR
from tests.capture.formats.field import FIELD, some, written
from tests.helpers.ports import free_channel

CANDUMP = BY_KEY["candump"]
LOG = """\
(1.000000) can0 123#1122
(1.000200) can0 18FEF100#R3
(1.000300) can0 7FF##1AABB
(1.000400) can0 456#
"""


def words(message: can.Message) -> str:
    head = f"{message.arbitration_id:08X}" if message.is_extended_id else f"{message.arbitration_id:03X}"
    if message.is_remote_frame:
        return f"{head}#R{message.dlc}"
    return f"{head}#{f'#{message.bitrate_switch:d}' if message.is_fd else ''}{message.data.hex().upper()}"


async def replayed(*more: str) -> tuple[int, list[str]]:
    """Replay to a channel of this process. Return the exit status, and the frames that came there."""
    channel = free_channel()
    with can.Bus(channel, "virtual") as device:
        word = f"can:{channel}?interface=virtual&fd=true"
        status = await asyncio.to_thread(main, ["capture", "replay", more[0], word, *more[1:]])
        heard = list(iter(lambda: device.recv(0), None))
    return status, [words(message) for message in heard]


async def test_a_log_comes_out_frame_by_frame_as_often_as_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x.log").write_text(LOG + "(1.000500) can0 20000004#0000000000000000\n")
    status, heard = await replayed(str(tmp_path / "x.log"), "--loop", "2", "--fast")
    assert (status, heard) == (0, ["123#1122", "18FEF100#R3", "7FF##1AABB", "456#"] * 2)
    assert "1 error frames are not sent" in capsys.readouterr().err


@pytest.mark.parametrize("form", FIELD, ids=lambda form: form.key)
async def test_every_format_and_what_is_imported_of_it_is_replayed_alike(
    tmp_path: Path, form: object
) -> None:
    path = tmp_path / f"x{next(iter(form.suffixes), '.pcapng')}"  # type: ignore[attr-defined]
    frames = some(60, form)  # type: ignore[arg-type]
    frames = frames.chosen(~frames.is_error & ((frames.marks == 0) | frames.is_fd))
    path.write_bytes(written(form, frames))  # type: ignore[arg-type]
    assert main(["capture", "import", str(path), "--directory", str(tmp_path / "d")]) == 0
    of_file = await replayed(str(path), "--fast", "--bus", "can0")
    of_rows = await replayed(str(tmp_path / "d"), "--fast", "--bus", "can can0")
    assert of_file == of_rows
    assert len(of_file[1]) == int((frames.channel == 0).sum())


async def test_several_channels_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.log").write_text(LOG + "(1.000500) can1 123#33\n")
    status, _ = await replayed(str(tmp_path / "x.log"), "--fast")
    assert status == 1
    assert "--bus 'can1': 1 frames" in capsys.readouterr().err
    assert await replayed(str(tmp_path / "x.log"), "--bus", "can1") == (0, ["123#33"])


def test_frames_of_a_hub_and_a_segment_are_chosen(tmp_path: Path) -> None:
    for name, identifier in (("a", 0x100), ("b", 0x200)):
        (tmp_path / f"{name}.log").write_text(f"(1.0) can0 {identifier:03X}#11\n(1.0) can1 001#\n")
        assert (
            main(["capture", "import", str(tmp_path / f"{name}.log"), "--directory", str(tmp_path / "d")])
            == 0
        )
    assert main(["capture", "export", str(tmp_path / "d"), str(tmp_path / "d.pcapng")]) == 0
    for source in (tmp_path / "d", tmp_path / "d.pcapng"):
        for hub, bus, ids in (
            (None, "can0", {0x100, 0x200}),
            ("file a.log", "can0", {0x100}),
            ("file b.log", "can can0", {0x200}),
        ):
            assert survey(source, Choice(hub, bus)).ids == ids
        for choice in (Choice("file c.log"), Choice("file a.log", "can2")):
            with pytest.raises(CaptureError, match="no such frames in it"):
                survey(source, choice)
    with pytest.raises(CaptureError, match="no such frames in it"):  # a log has no hub
        survey(tmp_path / "a.log", Choice("file a.log"))
    (tmp_path / "empty.log").write_text("")
    with pytest.raises(CaptureError, match=r"no CAN frames in it$"):
        survey(tmp_path / "empty.log", Choice())


def test_a_segment_is_chosen_by_its_whole_name() -> None:
    schema = pa.schema([(name, pa.string()) for name in ("hub", "bus", "peer")])
    segments = [f"can socketcan:can0 of 10.0.0.{n}" for n in (1, 2)]
    rows = [{"hub": "bridge x", "bus": bus, "peer": "can:socketcan:can0"} for bus in segments]
    batch = pa.RecordBatch.from_pylist(rows, schema=schema)
    for bus, found in ((segments[0], 1), ("can0", 2), ("can can0", 2), ("can1", 0)):
        assert len(FramePlace(bus=bus).rows(batch)) == found


def test_what_is_real_and_what_is_not() -> None:
    ours, theirs = pty.openpty()
    try:
        for word, real in (
            ("tcp://127.0.0.1:1", False), ("can:x?interface=virtual&protocol=raw", False),
            ("can:239.74.163.2?interface=udp_multicast&protocol=raw", False),
            ("can:nosuch0?protocol=raw", True), ("can:0?interface=pcan&protocol=raw", True),
            ("can:/dev/ttyACM0?interface=slcan&protocol=raw", True),
            (f"can:{os.ttyname(theirs)}?interface=slcan&protocol=raw", False),
            (f"uart:{os.ttyname(theirs)}?protocol=cannelloni", False),
            ("uart:/dev/ttyS0?protocol=cannelloni", True),
            ("udp:127.0.0.1:20000?protocol=cannelloni", False),
            ("udp:192.0.2.1:20000?protocol=cannelloni", True),
        ):  # fmt: skip
            assert bool(reality(parse_endpoint(word))) == real, word
    finally:
        os.close(ours)
        os.close(theirs)


@pytest.mark.parametrize("kind", ["", "can", "vcan", "vxcan"])
def test_the_kind_of_an_interface_decides(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "controller_of", lambda interface: Controller(kind))
    assert bool(reality(parse_endpoint("can:can0?protocol=raw"))) == (kind not in ("vcan", "vxcan"))


async def test_a_real_wire_needs_a_word_and_is_announced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "x.log").write_text(LOG)
    monkeypatch.setattr(live, "_SILENT", ())  # a channel of this process stands for an adapter
    assert await replayed(str(tmp_path / "x.log"), "--fast") == (1, [])
    assert (
        "an adapter of CAN (virtual): what is sent there may move things; --live" in capsys.readouterr().err
    )
    channel = free_channel()
    with can.Bus(channel, "virtual") as device:
        command = [
            "capture",
            "replay",
            str(tmp_path / "x.log"),
            f"can:{channel}?interface=virtual",
            "--live",
            "--fast",
        ]
        task = asyncio.create_task(asyncio.to_thread(main, command))
        while not task.done():
            for identifier in (0x123, 0x100):
                device.send(can.Message(arbitration_id=identifier, is_extended_id=False, data=b"\x01"))
            await asyncio.sleep(0.01)
        assert await task == 1  # it is no CAN FD bus
    said = capsys.readouterr().err
    assert "of 2 identifiers heard in 1 s; 1 are sent by both: 0x123" in said
    assert "dropped: 1 fd on classic: add fd=true to the endpoint" in said


async def test_lines_that_are_no_frames_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "x.log"
    log.write_text("(1.0) can0 123#01\n(1.1) can0 123##1" + "00" * 13 + "\nnonsense\n")
    assert (await replayed(str(log), "--fast"))[0] == 0
    said = capsys.readouterr().err
    assert f"{log}: left out: 2 lines that are none of candump -L, such as" in said


def test_a_protocol_of_values_takes_no_frames(tmp_path: Path) -> None:
    from appliance.probe.raw import raw_endpoint

    with pytest.raises(LinkError, match="protocol=raw"):
        raw_endpoint("uart:/dev/ttyS0?protocol=lines&receive=a")
    assert CANDUMP.writes


def test_what_is_left_out_of_a_database_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "car.dbc"
    path.write_text(CAR.replace("Gear : 0|3", "Gear 0|3"))
    cars_of([str(path)])
    said = f"buscoupler traffic: {path}: line 17: SG_ Gear 0|3@1+"
    assert any(line.startswith(said) for line in capsys.readouterr().err.splitlines())
    parse_endpoint(f"can:x?interface=virtual&protocol=dbc&file={path}")
    assert "line 17: SG_ Gear 0|3@1+" in capsys.readouterr().err


async def test_traffic_of_a_database(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "car.dbc").write_text(CAR)
    channel = free_channel()
    with can.Bus(channel, "virtual") as device:
        command = [
            "traffic",
            f"can:{channel}?interface=virtual",
            "--dbc",
            str(tmp_path / "car.dbc"),
            "--count",
            "40",
        ]
        assert await asyncio.to_thread(main, command) == 0
        heard = list(iter(lambda: device.recv(0), None))
    assert len(heard) == 40
    assert {message.arbitration_id for message in heard} <= {0x100, 0x200, 0x300, 0x400, 0x401}
    assert "2 messages have no cycle time" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["send"], ["traffic"], ["traffic", "--dbc", "{dbc}"]])
def test_frames_to_a_real_wire_need_a_word(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "car.dbc").write_text(CAR)
    command, *more = [word.format(dbc=tmp_path / "car.dbc") for word in words]
    pattern = ["can/0x123"] if command == "send" else []
    with pytest.raises(SystemExit):
        main([command, "can:nosuch0?protocol=raw&send=all", *pattern, *more, "--count", "1"])
    assert "what is sent there may move things; --live" in capsys.readouterr().err


def test_a_database_that_cannot_be_read_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["traffic", "can:x?interface=virtual", "--dbc", str(tmp_path / "none.dbc")])
    assert "none.dbc: No such file" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["traffic", "can:x?interface=virtual"])
    assert "node" in capsys.readouterr().err
