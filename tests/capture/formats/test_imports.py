"""Rows of pcapng, imported with the topologies that they were recorded under, which an audit needs."""

import io
import json
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("numpy")

import pyarrow as pa

from appliance.commands.capture import export_rows
from capture import parquet
from capture.files import CaptureError, capture_file, day_of, listed, name_of, opened, topology_of
from capture.formats.imports import imported
from capture.formats.rows import batches
from capture.pcapng import Packet, Writer, packets
from capture.reader import read
from capture.schema import META_GATEWAY, META_TOPOLOGY, META_VERSION, VERSION, Kind, arrow_schema
from tests.helpers.rights import no_room

BEGAN_NS = 1_780_000_000_000_000_000
HUBS = {"bus hall": {"gateways": ["gw-a"], "trunks": ["bus yard"]}}
MORE = {**HUBS, "bridge x": {"gateways": ["gw-a"], "sides": []}}


def packet(gateway: str, number: int, message: bytes = b"hello", kind: Kind = Kind.FRAME) -> Packet:
    at = BEGAN_NS + number
    return Packet(at, gateway, "bus hall", "bus hall", "p", 0, int(kind), 0, 5, number, 1, message)


def written(root: Path, gateway: str, first: int, hubs: object) -> None:
    """Write a file of ten rows; without a topology if `hubs` are None."""
    told = {} if hubs is None else {META_TOPOLOGY: json.dumps(hubs)}
    schema = arrow_schema({META_VERSION: str(VERSION), META_GATEWAY: gateway, **told})
    path = capture_file(root, day_of(BEGAN_NS), gateway, name_of(5, first))
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [packet(gateway, first + number) for number in range(10)]
    parquet.write(path, schema, list(batches(rows, schema)))


def topologies(root: Path) -> dict[tuple[str, str], object]:
    """Return the topology of each file by gateway and number of the first row."""
    found = dict[tuple[str, str], object]()
    for path in listed(root):
        with opened(path) as file:
            found[path.parent.name, path.stem[-2:]] = json.loads(topology_of(file) or b"null")
    return found


def test_topologies_come_back_with_their_rows(tmp_path: Path) -> None:
    """One changes with a reload, one goes, and one gateway has none."""
    for first, hubs in ((0, HUBS), (10, HUBS), (20, MORE), (30, None)):
        written(tmp_path / "a", "gw-a", first, hubs)
    written(tmp_path / "a", "gw-b", 0, None)
    assert export_rows(tmp_path / "a", str(tmp_path / "a.pcapng")) == 0
    done = imported(tmp_path / "a.pcapng", tmp_path / "b", "here")
    assert (done.written, done.told) == (50, [])
    assert topologies(tmp_path / "b") == {
        ("gateway=gw-a", "00"): HUBS, ("gateway=gw-a", "20"): MORE, ("gateway=gw-a", "30"): None,
        ("gateway=gw-b", "00"): None,
    }  # fmt: skip
    assert list(read(tmp_path / "b")) == list(read(tmp_path / "a"))
    export_rows(tmp_path / "b", str(tmp_path / "b.pcapng"))
    export_rows(tmp_path / "a.pcapng", str(tmp_path / "c.pcapng"))
    assert (tmp_path / "a.pcapng").read_bytes() == (tmp_path / "b.pcapng").read_bytes()
    copied = io.BytesIO((tmp_path / "c.pcapng").read_bytes())
    assert list(packets(copied)) == list(read(tmp_path / "a.pcapng"))
    again = imported(tmp_path / "a.pcapng", tmp_path / "b", "here")
    assert (again.written, again.held) == (0, 50)


@pytest.mark.parametrize("text", [b"{", b"[]", b"5", b'{"bus hall": 5}', b"\xff", b"[" * 100_000])
def test_what_is_no_topology_is_told_and_its_rows_stay(text: bytes, tmp_path: Path) -> None:
    writer, told = Writer(), packet("gw-a", 0, text, Kind.TOPOLOGY)
    path = tmp_path / "odd.pcapng"
    path.write_bytes(writer.head() + writer.blocks(told) + writer.blocks(packet("gw-a", 0)))
    done = imported(path, tmp_path / "d", "here")
    assert (done.written, done.told) == (1, ["left out: 1 rows that no capture file has"])
    assert list(topologies(tmp_path / "d").values()) == [None]


def in_turn(path: Path, gateways: int, rows: int, kinds: tuple[Kind, ...] = (Kind.FRAME,)) -> list[Packet]:
    """Write rows of several gateways and kinds, which alternate, and return them."""
    writer, some = Writer(), list[Packet]()
    for number in range(rows):
        kind = kinds[number % len(kinds)]
        message = b"frames:" + bytes(16) if kind == Kind.WIRE else b"hello"
        some += [packet(f"gw-{one:02}", number, message, kind) for one in range(gateways)]
    path.write_bytes(writer.head() + b"".join(map(writer.blocks, some)))
    return some


def test_rows_of_more_gateways_than_files_were_kept_open_go_to_one_file_each(tmp_path: Path) -> None:
    """A plant's capture as one file has a row of each gateway in turn."""
    some = in_turn(tmp_path / "all.pcapng", 40, 300)
    done = imported(tmp_path / "all.pcapng", tmp_path / "d", "here")
    assert (done.written, done.told, len(listed(tmp_path / "d"))) == (12_000, [], 40)
    assert sorted(read(tmp_path / "d")) == sorted(some)


def test_rows_that_alternate_are_made_many_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch of its own for each row takes a ms and 10 KB each: minutes and gigabytes for a capture of an
    hour."""
    kinds = Kind.WIRE, Kind.FRAME, Kind.LEDGER
    some, sizes, add = in_turn(tmp_path / "all.pcapng", 3, 999, kinds), list[int](), parquet.Sheet.add

    def counted(sheet: parquet.Sheet, batch: pa.RecordBatch) -> None:
        sizes.append(batch.num_rows)
        add(sheet, batch)

    monkeypatch.setattr(parquet.Sheet, "add", counted)
    assert imported(tmp_path / "all.pcapng", tmp_path / "d", "here").written == sum(sizes) == len(some)
    assert min(sizes) > 300
    assert sorted(read(tmp_path / "d")) == sorted(some)


def test_files_that_wait_hold_so_many_rows_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("capture.formats.imports._HELD_ROWS", 500)
    some = in_turn(tmp_path / "all.pcapng", 4, 5000)  # of more than 1 MiB, which is read in pieces
    imported(tmp_path / "all.pcapng", tmp_path / "d", "here")
    groups = [opened_groups(path) for path in listed(tmp_path / "d")]
    assert len(groups) == 4
    assert max(groups) > 2  # one of its rows and the summary, without the bound
    assert sorted(read(tmp_path / "d")) == sorted(some)


def opened_groups(path: Path) -> int:
    with opened(path) as file:
        return int(file.metadata.num_row_groups)


def test_a_full_disk_is_told_with_the_directory_and_leaves_no_part_of_a_file(tmp_path: Path) -> None:
    log = tmp_path / "drive.log"
    log.write_text("(1700000000.000000) can0 123#1122\n" * 9)
    with no_room(), pytest.raises(CaptureError, match=f"^{tmp_path / 'out'}: "):
        imported(log, tmp_path / "out", "gw")
    assert [path for path in (tmp_path / "out").rglob("*") if path.is_file()] == []


def test_two_that_read_one_file_at_one_time_leave_each_row_once(tmp_path: Path) -> None:
    """Both wrote to a file of one name: the second put it in place while the first went on writing."""
    log, root = tmp_path / "drive.log", tmp_path / "b"
    log.write_text("".join(f"({1780000000 + n / 1e4:.6f}) can0 123#{n:08X}\n" for n in range(300_000)))
    counts = list[int]()

    def meanwhile(part: float, rows: int) -> None:
        if rows and not counts:
            counts.append(0)
            counts[0] = imported(log, root, "gw").written

    assert imported(log, root, "gw", on_progress=meanwhile).written == counts[0] == 300_000
    assert sum(1 for _ in read(root)) == 300_000
    assert [path.name for path in root.rglob(".*")] == []
