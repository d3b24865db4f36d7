"""`buscoupler capture` as a user runs it: record, export, replay."""

import asyncio
import gzip
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace

import can
import pytest

from appliance.commandline.cli import main
from bus.wire.batch import from_payloads
from capture.reader import read
from capture.schema import Kind
from devices.raw import RawDevice
from tests.appliance.probe.support import command, while_repeating
from tests.capture.capture_support import FRAMES, pcapng, row
from tests.devices.tap.tap_support import member
from tests.helpers.peers import until
from tests.helpers.ports import free_channel
from tests.helpers.rights import no_room


@asynccontextmanager
async def bus() -> AsyncIterator[str]:
    device = RawDevice(["tcp://127.0.0.1:0"])
    device.open(asyncio.get_running_loop())
    try:
        yield device.links[0].url
    finally:
        device.close()


async def run(*words: str) -> tuple[int, str]:
    """Run the command. Return its exit status and its error output."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "buscoupler", "capture", *words, stderr=asyncio.subprocess.PIPE
    )
    _, said = await process.communicate()
    assert process.returncode is not None
    return process.returncode, said.decode()


@pytest.mark.parametrize("where", ["--directory", "--pcapng"])
async def test_a_bus_is_recorded_exported_and_put_back(tmp_path: Path, where: str) -> None:
    target = tmp_path / "capture"
    async with bus() as url:
        task = asyncio.create_task(
            run(url, where, str(target), "--count", str(len(FRAMES)), "--seconds", "40", "--names", "fridge")
        )
        async with member(url) as (hub, _):
            while not task.done():
                hub.publish(from_payloads(FRAMES))
                await asyncio.sleep(0.05)
        assert (await task)[0] == 0
        frames = [packet.message for packet in read(target) if not packet.kind]
        assert frames[: len(FRAMES)] == FRAMES
        assert not {packet.message for packet in read(target) if not packet.kind} - set(FRAMES)
        if where == "--directory":
            exported = tmp_path / "x.pcapng"
            assert (await run("export", str(target), str(exported)))[0] == 0
            named, *rows = read(exported)
            assert rows == list(read(target))
            target = exported
        else:
            named = next(iter(read(target)))
        assert (named.kind, named.message) == (Kind.NAMES, b"fridge\n")
        async with member(url) as (_, ear):
            assert (await run("replay", str(target), url, "--fast"))[0] == 0
            await until(lambda: len(ear.messages) >= len(frames))
            assert ear.messages == frames


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["replay", "nowhere", "tcp://127.0.0.1:1"], "nowhere: there is no such file"),
        (["export", "{tmp}/two.pcapng", "/nowhere/x"], "/nowhere/x: No such file"),
        (["replay", "{tmp}/two.pcapng", "tcp://127.0.0.1:1"], "--hub 'bus q' --bus 'bus p': 1 message"),
        (["replay", "{tmp}/two.pcapng", "tcp://127.0.0.1:1", "--hub", "bus x"], "no such messages in it"),
        (["export", "{tmp}", "-"], "no capture in it"),
        (["replay", "{tmp}/text", "tcp://127.0.0.1:1"], "text: not a file of a format that is read"),
    ],
)
def test_what_is_wrong_is_one_clear_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], text: str
) -> None:
    pcapng(tmp_path / "two.pcapng", [row(0, FRAMES[0]), row(1, FRAMES[0], hub="bus q")])
    (tmp_path / "text").write_text("hello, this is text")
    assert main(["capture", *(word.format(tmp=tmp_path) for word in words)]) == 1
    assert text in capsys.readouterr().err


@pytest.mark.parametrize("words", [["export", "{tmp}/again.pcapng"], ["replay", "tcp://127.0.0.1:1"]])
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_of_rows_too_it_is_told_what_is_left_out(
    words: list[str], suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [row(0, FRAMES[0]), row(1, FRAMES[0], hub="bus q"), row(2, FRAMES[1], ts_ns=1 << 63), row(3, b"x")]
    data = pcapng(tmp_path / "rows.pcapng", rows).read_bytes()[:-5]
    packed = gzip.compress(data)[:-1] if suffix else data
    (tmp_path / f"cut.pcapng{suffix}").write_bytes(packed)
    command, target = words
    main(["capture", command, str(tmp_path / f"cut.pcapng{suffix}"), target.format(tmp=tmp_path)])
    said = capsys.readouterr().err
    assert "left out: 1 packet at the end that is cut off\n" in said
    assert "left out: 1 packets that are no rows of a capture\n" in said
    assert ("left out: 1 packed end that is damaged or cut off\n" in said) == bool(suffix)


LOG = "(1700000000.000000) can0 123#1122\n"


def test_what_is_read_is_not_written_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "x.log"
    log.write_text(LOG)
    (tmp_path / "link.log").symlink_to(log)
    for target in (log, tmp_path / "link.log", tmp_path / ".." / tmp_path.name / "x.log"):
        assert main(["capture", "export", str(log), str(target)]) == 1
        assert "is the file that is read" in capsys.readouterr().err
        assert log.read_text() == LOG


@pytest.mark.parametrize("name", ["y.log", "y.log.gz", "y.log.zst", "y.mcap", "y.mf4", "y.pcapng"])
def test_an_export_onto_a_full_disk_leaves_what_was_there(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if name.endswith("mcap"):
        pytest.importorskip("mcap")
    log, target = tmp_path / "x.log", tmp_path / name
    log.write_text(LOG)
    for there in ([log], [log, target]):
        with no_room():
            assert main(["capture", "export", str(log), str(target)]) == 1
        assert f"{target}: File too large" in capsys.readouterr().err
        assert sorted(tmp_path.iterdir()) == sorted(there)
        target.write_text("what was there")
    assert target.read_text() == "what was there"


@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
def test_pcapng_is_packed_and_unpacked_and_keeps_frames_that_are_no_rows_of_ours(
    suffix: str, tmp_path: Path
) -> None:
    def export(source: str, target: str) -> Path:
        assert main(["capture", "export", str(tmp_path / source), str(tmp_path / target)]) == 0
        return tmp_path / target

    pcapng(tmp_path / "rows.pcapng", [row(0, FRAMES[0]), row(1, FRAMES[1])])
    packed = export("rows.pcapng", f"packed.pcapng{suffix}")
    heads = {"": b"\x0a\x0d\x0d\x0a", ".gz": b"\x1f\x8b", ".zst": b"\x28\xb5\x2f\xfd"}
    assert packed.read_bytes().startswith(heads[suffix])
    again = export(packed.name, "again.pcapng")
    assert [one.message for one in read(again) if not one.kind] == FRAMES[:2]
    (tmp_path / "x.log").write_text(LOG)
    export("x.log", f"can.pcapng{suffix}")
    export(f"can.pcapng{suffix}", f"can2.pcapng{suffix}")
    assert export(f"can2.pcapng{suffix}", "y.log").read_text() == LOG


@pytest.mark.parametrize("target", ["x.log", "x.pcapng", "x.mcap", "x.blf"])
def test_the_standard_input_is_a_file_of_can_frames(
    target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if target.endswith("mcap"):
        pytest.importorskip("mcap")
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=BytesIO(LOG.encode())))
    assert main(["capture", "export", "-", str(tmp_path / target)]) == 0
    assert main(["capture", "export", str(tmp_path / target), str(tmp_path / "y.log")]) == 0
    assert (tmp_path / "y.log").read_text() == LOG


def test_a_file_of_a_later_version_is_refused_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    from capture.schema import META_VERSION, arrow_schema

    for name, metadata, text in (
        (
            "later",
            {META_VERSION: "99"},
            "capture schema 99, and this program reads up to 2: update buscoupler",
        ),
        ("longer", {META_VERSION: "9" * 5000}, "a Parquet file, but not of a capture"),
        ("other", None, "a Parquet file, but not of a capture"),
    ):
        path = tmp_path / name / "date=2026-01-01" / "gateway=gw" / "1-0.parquet"
        path.parent.mkdir(parents=True)
        schema = pa.schema([pa.field("x", pa.int64())]) if metadata is None else arrow_schema(metadata)
        parquet.write_table(schema.empty_table(), path)
        assert main(["capture", "export", str(tmp_path / name), str(tmp_path / "x")]) == 1
        assert text in capsys.readouterr().err
    (tmp_path / "later" / "date=2026-01-01" / "gateway=gw" / "1-0.parquet").write_bytes(b"torn")
    assert main(["capture", "export", str(tmp_path / "later"), str(tmp_path / "x")]) == 1
    assert "1-0.parquet" in capsys.readouterr().err


async def test_an_endpoint_without_a_peer_and_no_output(tmp_path: Path) -> None:
    status, said = await run("tcp://127.0.0.1:1", "--pcapng", str(tmp_path / "x"), "--seconds", "0.3")
    assert (status, "0 messages" in said) == (1, True)
    assert list(read(tmp_path / "x")) == []
    status, said = await run("tcp://127.0.0.1:1")
    assert (status, "--directory DIR or --pcapng FILE" in said) == (2, True)


@pytest.mark.parametrize("gateway", ["../../../escape", "a/b", "", "."])
def test_the_name_of_a_gateway_leads_nowhere_else(
    gateway: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["capture", "tcp://127.0.0.1:1", "--directory", str(tmp_path / "here"), "--gateway", gateway])
    assert "is no name" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("where", ["--directory", "--pcapng"])
async def test_a_frame_of_can_has_the_time_of_the_adapter(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel, told_s = free_channel(), round(time.time() - 3, 3)
    monkeypatch.setattr("can.interfaces.virtual.time", SimpleNamespace(time=lambda: told_s))
    with can.Bus(channel, "virtual") as device:
        words = f"can:{channel}?interface=virtual&protocol=raw", where, str(tmp_path / "c"), "--count", "1"
        hearing = command("capture", *words, "--seconds", "40")
        assert await while_repeating(lambda: device.send(can.Message(arbitration_id=5)), hearing) == 0
    assert {one.ts_ns for one in read(tmp_path / "c") if one.kind == Kind.FRAME} == {
        round(told_s * 1e3) * 10**6
    }


def test_an_empty_log_is_not_told_of_taps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.log").touch()
    assert main(["capture", "export", str(tmp_path / "x.log"), str(tmp_path / "y.asc")]) == 1
    assert capsys.readouterr().err == "0 CAN frames\n"
    source = pcapng(tmp_path / "x.pcapng", [row(0, FRAMES[0])])
    assert main(["capture", "export", str(source), str(tmp_path / "y.asc")]) == 1
    assert "a tap with `wire: true` records them" in capsys.readouterr().err
