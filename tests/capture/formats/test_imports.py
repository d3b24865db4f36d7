"""Rows of pcapng, imported with the topologies that they were recorded under, which an audit needs."""

import io
import json
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("numpy")

from appliance.commands.capture import export_rows
from capture import parquet
from capture.files import capture_file, day_of, listed, name_of, opened, topology_of
from capture.formats.imports import imported
from capture.formats.rows import batches
from capture.pcapng import Packet, Writer, packets
from capture.reader import read
from capture.schema import META_GATEWAY, META_TOPOLOGY, META_VERSION, VERSION, Kind, arrow_schema

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
    assert (done.written, done.told) == (1, ["1 rows that no capture file has"])
    assert list(topologies(tmp_path / "d").values()) == [None]
