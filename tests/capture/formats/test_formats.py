"""Every format of the table: there and back, cut at any byte, packed, and what it cannot hold."""

import gzip
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from struct import Struct
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bus.wire.identifier import ERROR, EXTENDED, REMOTE
from capture.files import CaptureError
from capture.formats.exports import FramePlace, exported, frames_in
from capture.formats.format import Format
from capture.formats.imports import imported
from capture.formats.losses import OF_ERRORS, Losses
from capture.formats.source import LeftOut
from capture.formats.table import BY_KEY, FORMATS, by_name, format_of
from capture.frames import SWITCH, Frames
from capture.reader import read
from tests.capture.formats.field import BEGAN_NS, FIELD, READERS, listed, read_back, some, written

DAY_NS = 86_400 * 10**9
MARKING = ("asc", "blf", "mf4", "mcap", "pcap", "can-pcapng")
"""The formats that mark extended identifiers beside them, so that another one may be too long."""
of_each = pytest.mark.parametrize("form", FIELD, ids=lambda form: form.key)


def put(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


@of_each
def test_frames_are_the_same_there_and_back(form: Format, tmp_path: Path) -> None:
    frames = some(300, form)
    found, told, _ = read_back(put(tmp_path / "file", written(form, frames)), form)
    assert listed(found) == listed(frames)
    assert told == []


@of_each
def test_a_file_that_is_imported_and_exported_is_the_same_byte_for_byte(form: Format, tmp_path: Path) -> None:
    path = put(tmp_path / f"drive{(form.suffixes or ('.x',))[0]}", written(form, some(100, form)))
    done = imported(path, tmp_path / "d", "car", READERS[form.key].key)
    assert (done.written, done.held, done.told) == (100, 0, [])
    again = imported(path, tmp_path / "d", "car", READERS[form.key].key)
    assert (again.written, again.held) == (0, 100)
    with frames_in(tmp_path / "d") as found:
        assert exported(found, form, str(tmp_path / "again")) == (100, 0)
        assert list(found.told.lines()) == []
    assert (tmp_path / "again").read_bytes() == path.read_bytes()
    assert listed(read_back(tmp_path / "again", form)[0]) == listed(read_back(path, form)[0])


@pytest.mark.parametrize("form", [one for one in FIELD if not one.naming], ids=lambda form: form.key)
def test_channels_of_any_names_stay_apart(form: Format, tmp_path: Path) -> None:
    names = ["usb:1", "ser:1", "1", "can usb:1", "x:", "a | b", "\n:2", "é"]
    frames = replace(some(100, form), channel=np.arange(100) % len(names), names=names)
    path = put(tmp_path / "drive", written(form, frames))
    imported(path, tmp_path / "d", "car", READERS[form.key].key)
    with frames_in(tmp_path / "d") as found:
        exported(found, form, str(tmp_path / "again"))
        assert list(found.told.lines()) == []
    assert (tmp_path / "again").read_bytes() == path.read_bytes()
    for word in ("usb:1", "can usb:1"):  # a channel, or a segment
        with frames_in(tmp_path / "d", None, FramePlace(bus=word)) as found:
            assert {name for part in found.frames for name in part.names} == {"usb:1"}
        with frames_in(path, READERS[form.key].key, FramePlace(bus="usb:1")) as found:
            assert sum(len(part) for part in found.frames) == 13


@of_each
def test_a_file_cut_at_any_byte_loses_at_most_its_end_and_invents_nothing(
    form: Format, tmp_path: Path
) -> None:
    held = replace(form, codes=form.codes and form.key != "candump")  # its first code may be what is cut off
    whole = written(form, some(8, held))
    frames = listed(read_back(put(tmp_path / "file", whole), form)[0])
    before = 0
    for cut in (*range(0, len(whole), 1 + len(whole) // 1000), len(whole)):
        path = put(tmp_path / "file", whole[:cut])
        try:
            found = listed(read_back(path, form)[0])
        except CaptureError:
            found = []
        assert found == frames[: len(found)], cut
        assert len(found) >= before, cut
        before = len(found)
    assert before == 8


@of_each
@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_a_packed_file_is_read_and_written_and_may_be_cut(form: Format, suffix: str, tmp_path: Path) -> None:
    frames = some(2_000, form)
    plain = put(tmp_path / "plain", written(form, frames))
    with frames_in(plain, READERS[form.key].key) as found:
        exported(found, form, str(tmp_path / f"file{suffix}"))
    path = tmp_path / f"file{suffix}"
    packed = path.read_bytes()
    assert listed(read_back(path, form)[0]) == listed(frames)
    for part in (0.3, 0.6, 0.999):
        cut = put(tmp_path / "cut", packed[: int(len(packed) * part)])
        try:
            found_cut, told, _ = read_back(cut, form)
        except CaptureError:
            continue
        assert listed(found_cut) == listed(frames)[: len(listed(found_cut))]
        assert any("packed end" in line for line in told)


@of_each
def test_of_what_is_packed_within_a_file_the_beginning_counts(form: Format, tmp_path: Path) -> None:
    """Formats pack some thousands of frames together, and a logger that was killed leaves a part of them."""
    frames = some(2_000, form)
    whole = written(form, frames)
    is_mcap = form.key == "mcap"  # with indexes behind its chunk
    end = whole.index(b"\x06") + 9 + int.from_bytes(whole[36:44], "little") if is_mcap else len(whole)
    found, told, _ = read_back(put(tmp_path / "file", whole[: int(end * 0.6) - 5]), form)
    assert found is not None
    assert listed(found) == listed(frames)[: len(found)]
    assert len(found) > 600
    assert len(told) == 1


def zstd(data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as file:
        file.write(data)
    return bytes(sink.getvalue())


@pytest.mark.parametrize(("part", "more"), [(1.0, b"no zstd"), (0.9, b""), (0.5, b"")])
def test_of_zstd_all_counts_that_can_be_unpacked(part: float, more: bytes, tmp_path: Path) -> None:
    form = BY_KEY["candump"]
    frames = some(12_000, form)
    data = written(form, frames)
    packed = zstd(data)
    torn = packed[: int(len(packed) * part)] + more
    stream, size = pa.CompressedInputStream(pa.BufferReader(torn), "zstd"), 0
    with suppress(OSError):
        while stream.read(1):
            size += 1
    found, told, _ = read_back(put(tmp_path / "x.log.zst", torn), form)
    assert found is not None
    assert len(found) == data[:size].count(b"\n") > 0
    assert listed(found) == listed(frames)[: len(found)]
    assert told[0] == "left out: 1 packed end that is damaged or cut off"


@pytest.mark.parametrize("first", range(0x50, 0x60))
def test_what_zstd_skips_may_stand_anywhere(first: int, tmp_path: Path) -> None:
    form = BY_KEY["candump"]
    data, skipped = written(form, some(50, form)), bytes((first, 0x2A, 0x4D, 0x18, 3, 0, 0, 0)) + b"abc"
    parts = skipped, zstd(data[:700]), skipped, zstd(data[700:]), skipped
    found, told, _ = read_back(put(tmp_path / "x.log.zst", b"".join(parts)), form)
    assert (len(listed(found)), told) == (50, [])


def test_members_of_gzip_one_behind_another_are_one_file(tmp_path: Path) -> None:
    form = BY_KEY["candump"]
    data = written(form, some(50, form))
    path = put(tmp_path / "x.log.gz", gzip.compress(data[:700]) + gzip.compress(data[700:]) + bytes(10))
    assert len(listed(read_back(path, form)[0])) == 50


@pytest.mark.parametrize("form", [one for one in FORMATS if one.suffixes], ids=lambda form: form.key)
def test_a_file_is_known_by_its_suffix_and_by_what_is_in_it(form: Format) -> None:
    for suffix in form.suffixes:
        for packed in ("", ".gz", ".ZST"):
            assert by_name(f"a/drive{suffix.upper()}{packed}") is form
    if form in FIELD:
        head = written(form, some(3, form))
        assert format_of("drive", head).key == READERS[form.key].key


@of_each
def test_what_a_format_cannot_hold_is_told(form: Format) -> None:
    frames = replace(some(400, BY_KEY["can-pcapng"]), names=["can0", "body"])
    frames = replace(frames, ts_ns=frames.ts_ns + 7)
    told = LeftOut()
    kept = Losses(form, told).fitted(frames, form.step_ns)
    lines = "\n".join(told.lines())
    for held, which, word in (
        (form.fd, frames.is_fd, "CAN FD frames"),
        (form.remote, frames.is_remote, "remote frames"),
        (form.errors, frames.is_error, "error frames"),
    ):
        assert (f"{int(which.sum())} {word}, which" in lines) == (not held)
    assert ("frames that were sent" in lines) == (not form.directions)
    assert ("names that are the same" in lines) == (form.key == "pcap")
    assert ("length codes" in lines) == (not form.codes)
    assert ("times cut" in lines) == (form.step_ns > 1)
    left = np.zeros(len(frames), np.bool_)
    for held, which in (
        (form.fd, frames.is_fd),
        (form.remote, frames.is_remote),
        (form.errors, frames.is_error),
    ):
        left |= which & (not held)
    assert len(kept) == len(frames) - int(left.sum())


ERRORS = {
    "short": (ERROR | 4, 3, 0, False, False),
    "extended": (ERROR | EXTENDED | 0x12345678, 8, 0, False, False),
    "remote": (ERROR | REMOTE | 4, 8, 0, False, False),
    "code": (ERROR | 4, 8, 12, False, False),
    "fd": (ERROR | 4, 8, SWITCH, True, False),
    "long": (ERROR | 4, 12, SWITCH, True, False),
    "sent": (ERROR | 4, 8, 0, False, True),
}
UNTOLD = {
    "candump": {"extended", "remote", "sent"}, "blf": {"remote", "fd", "long", "sent"},
    "mf4": {"remote", "long"}, "pcap": {"sent"}, "asc": {*ERRORS}, "trc": {*ERRORS}, "csv": {*ERRORS},
}  # fmt: skip


@of_each
@pytest.mark.parametrize("sort", ERRORS)
def test_an_error_frame_is_the_same_there_and_back_or_what_it_loses_is_told(
    form: Format, sort: str, tmp_path: Path
) -> None:
    identifier, size, marks, is_fd, is_sent = ERRORS[sort]
    data = np.arange(1, size + 1, dtype=np.uint8)[None]
    columns = [BEGAN_NS], [0], [is_sent], [identifier], [size], [marks], [is_fd]
    kinds = np.int64, np.int64, np.bool_, np.uint32, np.uint8, np.uint8, np.bool_
    made: Iterator[Any] = (np.array(column, kind) for column, kind in zip(columns, kinds, strict=True))
    frames, told = Frames.of([*made, np.pad(data, ((0, 0), (0, 64 - size)))], ["can0"]), LeftOut()
    kept = Losses(form, told).fitted(frames, form.step_ns)
    path = put(tmp_path / "file", written(form, kept) if len(kept) else b"")
    found = listed(read_back(path, form)[0]) if len(kept) else []
    is_untold = sort in UNTOLD.get(form.key, set())
    assert (found != listed(frames)) is is_untold
    assert (len(list(told.lines())) == 1) is is_untold
    assert not len(kept) or sort not in {key for key in form.errors_lack if not OF_ERRORS[key][1]}


@of_each
def test_a_time_before_the_first_one_is_that_one_where_times_count_from_it(form: Format) -> None:
    first_ns = BEGAN_NS // 10**6 * 10**6
    times = np.array([BEGAN_NS, first_ns - 1, first_ns, BEGAN_NS + 5])
    frames, told = replace(some(4, form), ts_ns=times), LeftOut()
    losses = Losses(form, told)
    assert len(losses.fitted(frames.chosen(np.array([], np.int64)), 1)) == 0
    kept = losses.fitted(frames, 1)
    assert kept.ts_ns.tolist() == [BEGAN_NS, first_ns - (not form.relative), first_ns, BEGAN_NS + 5]
    assert [*told.lines()] == ["note: 1 times before the first frame: its time is written"] * form.relative


def test_error_frames_of_vector_s_other_kinds_are_told(tmp_path: Path) -> None:
    """CAN_ERROR and CAN_FD_ERROR_64, as objects outside of a container, behind a header of 144 bytes."""
    head = b"LOGG" + (144).to_bytes(4, "little") + bytes(136)
    objects = [Struct("<4sHHLLLHHQ8x").pack(b"LOBJ", 32, 1, 40, kind, 2, 0, 0, 0) for kind in (2, 104, 3)]
    path = put(tmp_path / "file", head + b"".join(objects))
    assert read_back(path, BY_KEY["blf"])[1] == [
        "left out: 1 error frames without identifier and data",
        "left out: 1 error frames of CAN FD",
        "left out: 1 objects that are no CAN frame, such as 'type 3'",
    ]


@of_each
@pytest.mark.parametrize("ts_ns", [(1 << 32) * 10**9, (1 << 63) - 1])
def test_late_times_come_back_and_one_beyond_what_a_format_has_is_told(
    form: Format, ts_ns: int, tmp_path: Path
) -> None:
    frames, told = replace(some(1, form), ts_ns=np.array([ts_ns // form.step_ns * form.step_ns])), LeftOut()
    kept = Losses(form, told).fitted(frames, form.step_ns)
    assert [*told.lines()] == ["left out: 1 frames after 2106-02-07, which pcap does not have"] * (
        form.key == "pcap"
    )
    if len(kept):
        path = put(tmp_path / "file", written(form, kept))
        assert listed(read_back(path, form)[0]) == listed(frames)
        assert imported(path, tmp_path / "d", "car", READERS[form.key].key).written == 1


@of_each
def test_names_that_a_reader_finds_otherwise_are_told(form: Format, tmp_path: Path) -> None:
    names = ["vcan123", "a-long-interface-1", "a-long-interface-2"]
    frames, told = replace(some(3, form), names=names, channel=np.arange(3)), LeftOut()
    kept = Losses(form, told).fitted(frames, form.step_ns)
    found = [row[1] for row in listed(read_back(put(tmp_path / "x", written(form, kept)), form)[0])]
    lines = [line for line in told.lines() if "names" in line]
    if form.key == "candump":
        assert found == ["vcan123", "a-long-interfac", "a-long-interfac"]
        assert lines == [
            "note: 1 names that are others in candump, such as 'a-long-interface-1 is a-long-interfac'",
            "note: 1 names that are the same as others in candump, such as "
            "'a-long-interface-2 is a-long-interfac'",
        ]
    elif form.key == "pcap":
        assert found == ["can0"] * 3
        assert lines == [
            "note: 1 names that are others in pcap, such as 'vcan123 is can0'",
            "note: 2 names that are the same as others in pcap, such as 'a-long-interface-1 is can0'",
        ]
    elif form.naming:
        assert found == ["can23", "can1", "can2"]
        assert lines == [f"note: 3 names that are others in {form.key}, such as 'vcan123 is can23'"]
    else:
        assert (found, lines) == (names, [])


def test_a_log_that_has_grown_adds_only_what_is_new(tmp_path: Path) -> None:
    form = BY_KEY["candump"]
    data = written(form, some(300, form))
    lines = data.splitlines(keepends=True)
    put(tmp_path / "x.log", b"".join(lines[:200]))
    assert imported(tmp_path / "x.log", tmp_path / "d", "car").written == 200
    put(tmp_path / "x.log", data)
    done = imported(tmp_path / "x.log", tmp_path / "d", "car")
    assert (done.written, done.held) == (100, 200)
    with frames_in(tmp_path / "d") as found:
        assert sum(map(len, found.frames)) == 300


@of_each
def test_a_file_of_each_format_may_grow_from_its_first_frame_on(form: Format, tmp_path: Path) -> None:
    frames, key, place = some(40, form), READERS[form.key].key, tmp_path / "d"
    added = [0]
    for count in (1, 2, 30, 40, 40, 5):
        put(tmp_path / "x", written(form, frames.chosen(np.arange(count))))
        done = imported(tmp_path / "x", place, "car", key)
        assert (done.written, done.held) == (max(0, count - max(added)), min(count, max(added)))
        added.append(count)
    with frames_in(place) as found:
        assert sum(map(len, found.frames)) == 40


def test_a_file_whose_name_is_not_utf_8_is_imported(tmp_path: Path) -> None:
    path = put(tmp_path / "b\udcff.log", b"(1.0) can0 123#11\n")
    assert imported(path, tmp_path / "d", "car").written == 1
    assert [row.hub for row in read(tmp_path / "d")] == [r"file b\xff.log"]


def test_logs_that_begin_alike_are_two(tmp_path: Path) -> None:
    same = "".join(f"(0000000000.000000) can0 {n:03X}#\n" for n in range(300))
    for name, text in (("a", "7FE#"), ("b", "7FF#")):
        path = put(tmp_path / f"{name}.log", f"{same}(0000000001.000000) can0 {text}\n".encode())
        for expected in ((301, 0), (0, 301)):
            done = imported(path, tmp_path / "d", "car")
            assert (done.written, done.held) == expected


def test_days_have_files_of_their_own(tmp_path: Path) -> None:
    frames = some(40, BY_KEY["candump"])
    frames = replace(frames, ts_ns=frames.ts_ns + np.arange(40) % 3 * 86_400 * 10**9)
    put(tmp_path / "x.log", written(BY_KEY["candump"], frames))
    assert imported(tmp_path / "x.log", tmp_path / "d", "car").written == 40
    days = sorted(path.name for path in (tmp_path / "d" / "capture").iterdir())
    assert days == ["date=2015-07-10", "date=2015-07-11", "date=2015-07-12"]


@of_each
def test_frames_in_no_order_at_midnight_keep_their_own(form: Format, tmp_path: Path) -> None:
    """As those of two adapters in one log; each day has a file, and one goes on after the next has begun."""
    midnight_ns = BEGAN_NS // DAY_NS * DAY_NS + DAY_NS
    turns = np.tile([0, 7, 3, -4, -9, 12, 1, -2], 13)[:100] * 1_000_000
    first_ns = midnight_ns - 20_000_000  # some formats have no time before that of the first frame
    frames = replace(some(100, form), ts_ns=np.maximum(midnight_ns + turns, first_ns))
    frames.ts_ns[0] = first_ns
    path = put(tmp_path / "drive", written(form, frames))
    imported(path, tmp_path / "d", "car", READERS[form.key].key)
    assert len(list((tmp_path / "d").rglob("*.parquet"))) == 2
    with frames_in(tmp_path / "d") as found:
        exported(found, form, str(tmp_path / "again"))
        assert list(found.told.lines()) == []
    assert (tmp_path / "again").read_bytes() == path.read_bytes()
    assert [row.cap_seq for row in read(tmp_path / "d")] == list(range(100))


def test_what_is_no_file_of_the_field_is_one_clear_line(tmp_path: Path) -> None:
    for name, data in (("x.dat", b"hello"), ("x.blf", b"hello"), ("x", b""), ("x.pcap", b"\0" * 50)):
        with pytest.raises(CaptureError, match=r"not a|: empty,"):
            imported(put(tmp_path / name, data), tmp_path / "d", "car")
    with pytest.raises(CaptureError, match="No such file"):
        imported(tmp_path / "nothing.log", tmp_path / "d", "car")


@pytest.mark.parametrize("name", ["x.mf4", "x.log", "x.csv", "x"])
def test_a_pointer_of_git_lfs_is_called_one(name: str, tmp_path: Path) -> None:
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:29da7e4d\nsize 205794\n"
    with pytest.raises(CaptureError, match="Git LFS, not the file itself"):
        imported(put(tmp_path / name, pointer), tmp_path / "d", "car")


@pytest.mark.parametrize("form", [one for one in FIELD if one.key in MARKING], ids=lambda form: form.key)
def test_a_standard_frame_with_a_longer_identifier_is_none(form: Format, tmp_path: Path) -> None:
    frames = some(40, replace(form, errors=False, errors_lack=()))
    wrong = np.arange(40) % 4 == 1
    ids = np.where(wrong, (frames.ids & np.uint32(0xFFF)) | np.uint32(0x1000), frames.ids)
    path = put(tmp_path / "file", written(form, replace(frames, ids=ids.astype(np.uint32))))
    found, told, _ = read_back(path, form)
    assert listed(found) == listed(frames.chosen(~wrong))
    assert [line.split()[:3] for line in told] == [["left", "out:", "10"]]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
@pytest.mark.parametrize("form", [one for one in FIELD if one.looks], ids=lambda form: form.key)
def test_a_log_in_another_encoding_is_refused_with_what_to_do(
    form: Format, encoding: str, tmp_path: Path
) -> None:
    text = written(form, some(9, form)).decode().encode(encoding)
    expected = f"not UTF-8 text but {encoding.upper()}: save it as UTF-8"
    with pytest.raises(CaptureError, match=expected):
        imported(put(tmp_path / f"log{form.suffixes[0]}", text), tmp_path / "d", "car")
    with pytest.raises(CaptureError, match=expected):
        imported(put(tmp_path / "packed.gz", gzip.compress(text)), tmp_path / "d", "car")


def test_a_row_of_another_gateway_leads_nowhere_else(tmp_path: Path) -> None:
    from tests.capture.capture_support import FRAMES, pcapng, row

    path = pcapng(
        tmp_path / "x.pcapng", [row(0, FRAMES[0])._replace(gateway="../../../escape"), row(1, FRAMES[1])]
    )
    assert imported(path, tmp_path / "in" / "d", "car").written == 2
    places = {file.parent.name for file in (tmp_path / "in").rglob("*.parquet")}
    assert places == {"gateway=car", "gateway=gw"}
    assert list(tmp_path.glob("*escape*")) == []


def test_a_bomb_is_unpacked_in_pieces(tmp_path: Path) -> None:
    path = put(tmp_path / "x.log.gz", gzip.compress(b"(1.0) can0 123#11\n" + bytes(40_000_000)))
    found, told, _ = read_back(path, BY_KEY["candump"])
    assert len(listed(found)) == 1
    assert any("lines longer" in line for line in told)


def test_frames_merge_by_time() -> None:
    from capture.frames import ordered

    frames = some(200, BY_KEY["can-pcapng"])
    parts: list[list[Frames]] = [[], []]
    for number in range(20):
        chunk = frames.chosen(np.arange(number * 10, number * 10 + 10))
        parts[number * 7 % 3 % 2].append(chunk)
    merged = [one for part in ordered([iter(part) for part in parts]) for one in listed(part)]
    assert sorted(merged, key=str) == sorted(listed(frames), key=str)
    assert [one[0] for one in merged] == sorted(one[0] for one in merged)  # type: ignore[type-var]


def test_bytes_of_the_kernel_are_those_of_the_medium() -> None:
    from bridges.items import FD
    from bridges.media.can import socketcan
    from capture.frames import items, parsed

    frames = some(300, BY_KEY["can-pcapng"])
    packed = items(frames)
    for (_, _, _, number, size, marks, is_fd, data), item in zip(
        listed(frames), packed.to_pylist(), strict=True
    ):
        content = data.ljust(size, b"\0")  # type: ignore[attr-defined]
        word = (FD | (marks & 1) << 2 | (marks & 2) << 2) if is_fd else marks << 4  # type: ignore[operator]
        assert item == socketcan.pack_frame((number, content, word))  # type: ignore[arg-type]
    odd = pa.array([b"", None, bytes(16), bytes([0, 0, 0, 0, 9, *bytes(11)]), bytes(72)], pa.binary())
    assert parsed(odd).good.tolist() == [False, False, True, False, True]


def late(key: str, frames: Frames, of: bytes) -> bytes:
    """Return a log whose style shows in its last line: a finer time, a frame that was sent, an error without
    a direction."""
    directed = {"direction": key == "bare errors", "step_ns": 1000}
    lines = written(BY_KEY[key if key in BY_KEY else "candump"], frames, directed).splitlines(keepends=True)
    at = next(at for at in range(len(lines) - 1, 0, -1) if of in lines[at])
    if key == "bare errors":
        lines[at] = lines[at].replace(of, b"20000004#0004000000000000").replace(b" R", b"")
    elif key == "directions":
        lines[at] = lines[at].replace(b"\n", b" T\n")
    else:
        lines[at] = re.sub(rb"(\d\.\d+)", rb"\g<1>001", lines[at], count=1)
    return b"".join(lines)


@pytest.mark.parametrize(
    ("key", "of"),
    [("candump", b"123#11"), ("asc", b"d 1 11"), ("trc", b" 11"), ("directions", b"123#11"),
     ("bare errors", b"123#11")],
)  # fmt: skip
@pytest.mark.parametrize("way", ["from the log", "from the capture"])
def test_a_style_that_shows_late_in_a_log_is_followed(key: str, of: bytes, way: str, tmp_path: Path) -> None:
    """A time was cut, and what was sent counted as heard, without a word."""
    form, count = BY_KEY[key if key in BY_KEY else "candump"], 40_000  # more than a reader takes at once
    begin_ns = BEGAN_NS // 10**9 * 10**9
    none, words = np.zeros(count, np.bool_), np.zeros(count, np.uint8)
    frames = Frames(
        begin_ns + np.arange(count) * 10**6, np.zeros(count, np.int64), none,
        np.full(count, 0x123, np.uint32), words + np.uint8(1), words, none,
        np.full((count, 8), 0x11, np.uint8), ["can0"],
    )  # fmt: skip
    log, again, held = (tmp_path / name for name in ("a", "b", "held"))
    log.write_bytes(late(key, frames, of))
    source = log
    if way == "from the capture":
        imported(log, held, "car", form.key)
        source = held
    with frames_in(source, None if source == held else form.key) as found:
        assert exported(found, form, str(again)) == (count, 0)
        assert list(found.told.lines()) == []
    assert listed(read_back(again, form)[0])[-2:] == listed(read_back(log, form)[0])[-2:]
    if key == "bare errors":
        assert again.read_bytes() == log.read_bytes()
