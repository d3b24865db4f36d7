"""MCAP beside its own package: what we write opens there, and what it writes is read here."""

import io
import json
from pathlib import Path

import pytest

pytest.importorskip("mcap")

from mcap.reader import make_reader
from mcap.writer import CompressionType, Writer

from appliance.commandline.cli import main
from bus import extras
from bus.wire.frame import PUB, pack
from bus.wire.pattern import Pattern
from capture.files import CaptureError
from capture.formats import mcap
from capture.formats.exports import exported, frames_in
from capture.formats.mcap import value_of
from capture.formats.table import BY_KEY
from capture.reader import read
from tests.capture.capture_support import pcapng, row
from tests.capture.formats.field import listed, read_back, some, written

MCAP = BY_KEY["mcap"]


@pytest.mark.parametrize(
    ("module", "suffix", "extra"), [("mcap", ".mcap", "mcap"), ("pyarrow", ".log.zst", "capture")]
)
def test_a_missing_package_costs_the_target_nothing(
    module: str, suffix: str, extra: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = tmp_path / "drive.log", tmp_path / f"out{suffix}"
    source.write_text("(1700000000.000000) can0 100#00\n")
    target.write_text("what was there")
    monkeypatch.setattr(extras, "find_spec", lambda name: None if name == module else name)
    with frames_in(source) as found, pytest.raises(CaptureError, match=rf"install 'buscoupler\[{extra}\]'$"):
        exported(found, BY_KEY["mcap" if module == "mcap" else "candump"], str(target))
    assert target.read_text() == "what was there"


def test_its_package_reads_channels_by_identifier_with_schemas(tmp_path: Path) -> None:
    frames = some(50, MCAP)
    found = [*make_reader(io.BytesIO(written(MCAP, frames))).iter_messages(log_time_order=False)]
    assert [message.log_time for _, _, message in found] == frames.ts_ns.tolist()
    topics = {channel.topic for _, channel, _ in found}
    assert all(topic.startswith(("/can0/0x", "/can1/0x")) for topic in topics)
    for schema, _, message in found:
        assert schema is not None
        known = json.loads(schema.data)["properties"]
        assert set(json.loads(message.data)) <= set(known)


@pytest.mark.parametrize("packing", CompressionType)
def test_chunks_of_every_packing_are_read_and_other_schemas_are_told(
    packing: CompressionType, tmp_path: Path
) -> None:
    frames = some(40, MCAP)
    (tmp_path / "ours").write_bytes(written(MCAP, frames))
    with (tmp_path / "theirs").open("wb") as file:
        writer = Writer(file, compression=packing, chunk_size=500)
        writer.start("", "another")
        other = writer.register_channel("/x", "json", writer.register_schema("x", "jsonschema", b"{}"))
        numbers = dict[str, int]()
        for schema, channel, message in make_reader(
            io.BytesIO((tmp_path / "ours").read_bytes())
        ).iter_messages():
            assert schema is not None
            if channel.topic not in numbers:
                kind = writer.register_schema(schema.name, schema.encoding, schema.data)
                numbers[channel.topic] = writer.register_channel(channel.topic, "json", kind)
            writer.add_message(numbers[channel.topic], message.log_time, message.data, message.log_time)
        writer.add_message(other, 1, b"{}", 1)
        writer.finish()
    found, told, _ = read_back(tmp_path / "theirs", MCAP)
    assert sorted(listed(found), key=str) == sorted(listed(frames), key=str)
    assert told == ["left out: 1 messages of other schemas than ours"]


def test_messages_of_a_bus_are_channels_by_pattern_with_values_and_come_back_whole(tmp_path: Path) -> None:
    words = [
        (("fridge", "temp"), b"4.5"),
        (("fridge", "state"), b"open"),
        (("x",), b"\xff\x00"),
        (("x",), b"nan"),
    ]
    messages = [*(pack(PUB, Pattern(*names), data) for names, data in words), b"opaque"]
    source = pcapng(tmp_path / "x.pcapng", [row(number, one) for number, one in enumerate(messages)])
    assert main(["capture", "import", str(source), "--directory", str(tmp_path / "d")]) == 0
    (tmp_path / "d/capture/_names").mkdir()
    (tmp_path / "d/capture/_names/gw.txt").write_text("fridge\ntemp\nstate\n")
    assert main(["capture", "export", str(tmp_path / "d"), str(tmp_path / "x.mcap")]) == 0
    reader = make_reader(io.BytesIO((tmp_path / "x.mcap").read_bytes()))
    found = {
        (channel.topic, json.loads(message.data).get("value", json.loads(message.data).get("text")))
        for _, channel, message in reader.iter_messages()
    }
    token = f"/0x{Pattern('x')[0]:08x}"
    assert found - {(token, None), (token, "nan")} == {
        ("/fridge/temp", 4.5), ("/fridge/state", "open"), ("/opaque", None),
    }  # fmt: skip
    assert main(["capture", "import", str(tmp_path / "x.mcap"), "--directory", str(tmp_path / "e")]) == 0
    assert list(read(tmp_path / "e")) == list(read(tmp_path / "d"))


def test_identifiers_beyond_the_channels_that_a_file_has_share_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frames = some(20, MCAP)
    monkeypatch.setattr(mcap, "_OWN_TOPICS_MAX", 5)
    path = tmp_path / "x.mcap"
    path.write_bytes(written(MCAP, frames))
    topics = {channel.topic for _, channel, _ in make_reader(io.BytesIO(path.read_bytes())).iter_messages()}
    assert len(topics) == 6
    assert "/more buscoupler.CanFrame" in topics
    assert listed(read_back(path, MCAP)[0]) == listed(frames)


def test_half_of_a_surrogate_pair_in_a_name_ends_no_import(tmp_path: Path) -> None:
    said = {
        "channel": "can\ud800", "id": 1, "extended": False, "remote": False, "error": False, "fd": False,
        "marks": 0, "length": 0, "sent": False, "data": "",
    }  # fmt: skip
    with (tmp_path / "x.mcap").open("wb") as file:
        writer = Writer(file)
        writer.start()
        channel = writer.register_channel("/x", "json", writer.register_schema(mcap.FRAME, "jsonschema", b""))
        writer.add_message(channel, 1, json.dumps(said).encode(), 1)
        writer.finish()
    assert main(["capture", "import", str(tmp_path / "x.mcap"), "--directory", str(tmp_path / "d")]) == 0
    assert [row.bus for row in read(tmp_path / "d")] == ["can can?"]


@pytest.mark.parametrize(
    ("data", "said"),
    [(b"1e3", {"value": 1000.0}), (b"inf", {"text": "inf"}), (b"", {}), (b"\xff", {}), (b"a\n", {})],
)
def test_a_value_is_what_can_be_told(data: bytes, said: dict[str, object]) -> None:
    assert value_of(data) == said


@pytest.mark.parametrize(
    "text",
    ["1_000", "٣", "1e", "1e4000", "+5", " 7\r\n", "5\0", ".5", "5.", "-", "++5", "0x10", "1 2", "nan"],
)
def test_a_value_is_a_number_where_signals_say_so(text: str) -> None:
    """What Python alone takes for a number is text."""
    import pyarrow as pa

    from pipeline.signals.numerals import numbers_of

    (number,) = numbers_of(pa.array([text])).to_pylist()
    is_one = number is not None and number - number == 0
    assert value_of(text.encode()).get("value") == (number if is_one else None)
