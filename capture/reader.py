"""Captures read back, row by row in the order of time: capture files (needs pyarrow), or pcapng."""

import heapq
from collections.abc import Iterator, Mapping
from io import BufferedReader, RawIOBase
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from bus.wire.envelope import Envelope, wrap
from bus.wire.frame import pack
from capture.files import CaptureError, boot_of, finished, gateway_of, is_ours, opened, topology_of
from capture.formats.source import LeftOut, Source
from capture.pcapng import Packet, PcapngError, packets
from capture.schema import Kind

_ROWS = 4096


def read(path: Path, told: bool = False, left: LeftOut | None = None) -> Iterator[Packet]:
    """Read all rows of a pcapng file, which may have packets that are no rows (`schema.TOLD`), or of the
    capture files under a directory. With `told`, these have their topologies too; `left` takes what is left
    out of a file. Raises `CaptureError`."""
    is_file = path.exists() and not path.is_dir()
    return read_pcapng(path, left) if is_file else read_directory(path, told)


def read_pcapng(path: Path, left: LeftOut | None = None) -> Iterator[Packet]:
    """Read all rows of a pcapng file; `left` takes what is left out. Raises `CaptureError`."""
    try:
        with Source(path, told=left) as source, BufferedReader(_Unpacked(source)) as file:
            yield from packets(file, source.told.leave)
    except (OSError, PcapngError) as error:
        raise CaptureError(f"{path}: {error}") from error


class _Unpacked(RawIOBase):
    """The bytes of a source as a file."""

    def __init__(self, source: Source) -> None:
        self._source, self._left = source, b""

    def readable(self) -> bool:
        return True

    def readinto(self, place: Any) -> int:
        self._left = self._left or self._source.read()
        count = min(len(place), len(self._left))
        place[:count], self._left = self._left[:count], self._left[count:]
        return count


def read_directory(root: Path, told: bool = False) -> Iterator[Packet]:
    """Merge the rows of all gateways by time. Holds one piece of each run of a recorder in memory. With
    `told`, a packet with the topology stands before the rows that were recorded under it."""
    paths = groupby(finished(root), lambda path: (gateway_of(path), boot_of(path)))
    runs = [list(run) for _, run in paths]
    return heapq.merge(*(_read_run(paths, told) for paths in runs), key=lambda packet: packet.ts_ns)


def _read_run(paths: list[Path], told: bool) -> Iterator[Packet]:
    """Read the rows of a run in the order of their numbers, which may go to and fro between files."""
    from capture.ranges import entwined

    before = b""
    for some in entwined(paths):
        files = (_read_file(path, told) for path in some)
        for packet, topology in heapq.merge(*files, key=lambda one: one[0].cap_seq):
            if topology != before:
                yield _told(packet, topology)
                before = topology
            yield packet


def _read_file(path: Path, told: bool) -> Iterator[tuple[Packet, bytes]]:
    """Read the rows of a file, each with the topology that it was recorded under, if that is `told`."""
    gateway = gateway_of(path)
    with opened(path) as file:
        if not is_ours(file):
            raise CaptureError(f"{path}: rewritten by another program; only pipeline jobs read such files")
        topology = (topology_of(file) or b"") if told else b""
        for batch in file.iter_batches(_ROWS):
            for row in batch.to_pylist():
                if row["kind"] != Kind.CONTENTS:
                    yield packet_of(gateway, row), topology


def _told(first: Packet, topology: bytes) -> Packet:
    """Return the packet of a topology, which stands before the first row that was recorded under it."""
    return first._replace(
        hub="", bus="", peer="", dir=0, kind=int(Kind.TOPOLOGY), verdict=0, messages=1, message=topology
    )


def packet_of(gateway: str, row: Mapping[str, Any]) -> Packet:
    """Make a packet of a row, whose columns are given by name."""
    message = _MESSAGES.get(row["kind"], _word_of)(row)
    same = {name: row[name] for name in ("ts_ns", "hub", "bus", "peer", "dir", "kind", "verdict", "boot")}
    return Packet(**same, gateway=gateway, cap_seq=row["cap_seq"], messages=row["count"], message=message)


def item_of(row: Mapping[str, Any]) -> bytes:
    """Give back the item of a wire's row: what its items are called, a colon, and its bytes."""
    return _word_of(row) + b":" + bytes(row["payload"] or b"")


def _word_of(row: Mapping[str, Any]) -> bytes:
    return (row["reason"] or "").encode()


def message_of(row: Mapping[str, Any]) -> bytes:
    """Give back the message of a frame's row, byte for byte."""
    content = bytes(row["payload"] or b"")
    if row["type"] is not None:
        content = pack(row["type"], row["tokens"], content)
    if row["origin"] is None:
        return content
    return wrap(content, Envelope(row["origin"], row["seq"], row["hops"]))


_MESSAGES: Final = {Kind.FRAME: message_of, Kind.WIRE: item_of}
