"""Captures read back, row by row in the order of time: Parquet segments (needs pyarrow), or pcapng."""

import heapq
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

from bus.errors import BusError
from bus.wire.envelope import Envelope, wrap
from bus.wire.frame import pack
from capture.pcapng import Packet, PcapngError, packets
from capture.schema import GATEWAY, META_VERSION, SEGMENT_SUFFIX, VERSION, Kind

_ROWS = 4096


class CaptureError(BusError, ValueError):
    """A capture that cannot be read; the text says which file, and why."""


def read(path: Path) -> Iterator[Packet]:
    """All rows of a pcapng file, or of the segments under a directory. Raises `CaptureError`."""
    if path.is_dir():
        return read_segments(path)
    if not path.exists():
        raise CaptureError(f"{path}: there is no such file or directory")
    return read_pcapng(path)


def read_pcapng(path: Path) -> Iterator[Packet]:
    try:
        with path.open("rb") as file:
            yield from packets(file)
    except (OSError, PcapngError) as error:
        raise CaptureError(f"{path}: {error}") from error


def segment_files(root: Path) -> list[Path]:
    """Finished segments under a directory, those of each gateway and boot in order."""
    found = sorted(
        (path for path in root.rglob(f"*{SEGMENT_SUFFIX}") if not path.name.startswith(".")),
        key=lambda path: (gateway_of(path), path.name),
    )
    if not found:
        raise CaptureError(f"{root}: no segments (*{SEGMENT_SUFFIX}) in it")
    return found


def gateway_of(path: Path) -> str:
    """The gateway that a segment's path names."""
    return next((p.removeprefix(f"{GATEWAY}=") for p in path.parts if p.startswith(f"{GATEWAY}=")), "")


def read_segments(root: Path) -> Iterator[Packet]:
    """Rows of all gateways merged by time; in memory is one piece of each run of a recorder."""

    def run_of(path: Path) -> tuple[str, str]:
        return gateway_of(path), path.name.partition("-")[0]

    runs = [list(paths) for _, paths in groupby(segment_files(root), run_of)]
    return heapq.merge(*(_read_run(paths) for paths in runs), key=lambda packet: packet.ts_ns)


def _read_run(paths: list[Path]) -> Iterator[Packet]:
    from pyarrow import ArrowException, parquet

    for path in paths:
        gateway = gateway_of(path)
        try:
            with parquet.ParquetFile(path) as file:
                _check_version(path, file.schema_arrow.metadata or {})
                for batch in file.iter_batches(_ROWS):
                    for row in batch.to_pylist():
                        if row["kind"] != Kind.CONTENTS:
                            yield packet_of(gateway, row)
        except (OSError, ArrowException) as error:
            raise CaptureError(f"{path}: {error}") from error


def _check_version(path: Path, metadata: Mapping[bytes, bytes]) -> None:
    version = int(metadata.get(META_VERSION.encode(), b"0"))
    if not version:
        raise CaptureError(f"{path}: not a capture of buscoupler")
    if version > VERSION:
        raise CaptureError(f"{path}: schema version {version}; this version reads up to {VERSION}")


def packet_of(gateway: str, row: Mapping[str, Any]) -> Packet:
    """A packet from a row, its columns by name."""
    message = message_of(row) if row["kind"] == Kind.FRAME else (row["reason"] or "").encode()
    same = {name: row[name] for name in ("ts_ns", "hub", "bus", "peer", "dir", "kind", "verdict", "boot")}
    return Packet(**same, gateway=gateway, cap_seq=row["cap_seq"], messages=row["count"], message=message)


def message_of(row: Mapping[str, Any]) -> bytes:
    """The message of a frame's row, byte for byte."""
    if row["type"] is None:
        return bytes(row["payload"] or b"")
    frame = pack(row["type"], row["tokens"], row["payload"])
    if row["origin"] is None:
        return frame
    return wrap(frame, Envelope(row["origin"], row["seq"], row["hops"]))
