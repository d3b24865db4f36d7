"""The formats of the field, each with its record."""

import re
from pathlib import Path
from typing import Final

from bus.text import MARK
from capture.files import CaptureError
from capture.formats.format import Format
from capture.formats.heading import LOOKS
from capture.formats.looks import LOGGED, SHOWN

PCAPNG: Final = Format(
    key="pcapng",
    help="all rows, for Wireshark; SocketCAN's is read, too",
    suffixes=(".pcapng", ".ntar"),
    reads="capture.formats.pcap:read",
    signs=(b"\x0a\x0d\x0d\x0a",),
    rows=True,
)

FORMATS: Final = (
    Format(
        key="candump",
        help="log of candump -L; its console is read, too",
        suffixes=(".log", ".candump"),
        reads="capture.formats.candump:read",
        writes="capture.formats.candump:Writer",
        naming="capture.formats.candump:cut",
        looks=LOGGED.pattern + b"|" + SHOWN.pattern,
        step_ns=1000,
        directions=False,
        errors_lack=("remote", "extended"),
    ),
    Format(
        key="asc",
        help="text log of Vector's tools",
        suffixes=(".asc",),
        reads="capture.formats.asc:read",
        writes="capture.formats.asc:Writer",
        naming="capture.formats.columns:numbered",
        looks=rb"^(date \w+ \w+ \d|base (hex|dec))",
        step_ns=1000,
        errors_lack=("details",),
        relative=True,
    ),
    Format(
        key="blf",
        help="binary log of Vector's tools",
        suffixes=(".blf",),
        reads="capture.formats.blf:read",
        writes="capture.formats.blf:Writer",
        naming="capture.formats.columns:numbered",
        signs=(b"LOGG",),
        errors_lack=("remote", "fd", "sent"),
        relative=True,
        seeks=True,
    ),
    Format(
        key="trc",
        help="trace of PEAK's tools",
        suffixes=(".trc",),
        reads="capture.formats.trc:read",
        writes="capture.formats.trc:Writer",
        naming="capture.formats.columns:numbered",
        looks=rb"^;\$FILEVERSION=",
        step_ns=1000,
        errors=False,
        relative=True,
    ),
    Format(
        key="csv",
        help="table of SavvyCAN; others are read, too",
        suffixes=(".csv",),
        reads="capture.formats.commas:read",
        writes="capture.formats.commas:Writer",
        naming="capture.formats.columns:numbered",
        looks=LOOKS,
        step_ns=1000,
        fd=False,
        remote=False,
        errors=False,
        codes=False,
    ),
    Format(
        key="busmaster",
        help="log of BUSMASTER, only read",
        suffixes=(),
        reads="capture.formats.busmaster:read",
        looks=rb"^\*\*\*(BUSMASTER |<Time><Tx/Rx><Channel><CAN ID>)",
    ),
    Format(
        key="mf4",
        help="measurement of ASAM MDF 4",
        suffixes=(".mf4",),
        reads="capture.formats.mf4:read",
        writes="capture.formats.mf4_writer:Writer",
        naming="capture.formats.columns:numbered",
        signs=(b"MDF     4", b"UnFinMF 4"),
        errors_lack=("remote", "long"),
        relative=True,
        seeks=True,
    ),
    Format(
        key="mcap",
        help="MCAP of CAN frames and messages, for Foxglove",
        suffixes=(".mcap",),
        reads="capture.formats.mcap:read",
        writes="capture.formats.mcap:Writer",
        signs=(b"\x89MCAP0\r\n",),
        messages=True,
        package="mcap",
        extra="mcap",
    ),
    PCAPNG,
    Format(
        key="can-pcapng",
        help="pcapng of CAN frames, with SocketCAN's link type",
        suffixes=(),
        writes="capture.formats.pcap:PcapngWriter",
    ),
    Format(
        key="pcap",
        help="pcap of CAN frames, with SocketCAN's link type",
        suffixes=(".pcap", ".cap"),
        reads="capture.formats.pcap:read",
        writes="capture.formats.pcap:PcapWriter",
        last_ns=(1 << 32) * 10**9 - 1,
        signs=(b"\xd4\xc3\xb2\xa1", b"\xa1\xb2\xc3\xd4", b"\x4d\x3c\xb2\xa1", b"\xa1\xb2\x3c\x4d"),
        naming="capture.formats.pcap:only",
        directions=False,
    ),
)
BY_KEY: Final = {one.key: one for one in FORMATS}
_POINTER: Final = b"version https://git-lfs.github.com/"
PACKED: Final = (".gz", ".zst")


def plain_name(name: str) -> str:
    """Return the name of a file without the suffix that says how it is packed."""
    return next((name[: -len(suffix)] for suffix in PACKED if name.lower().endswith(suffix)), name)


def by_name(name: str) -> Format | None:
    """Return the format that the suffix of a file's name means."""
    suffix = Path(plain_name(name)).suffix.lower()
    return next((one for one in FORMATS if suffix and suffix in one.suffixes), None)


def format_of(name: str, head: bytes) -> Format:
    """Return the format of a file by its first bytes, or by its name. Raises `CaptureError`."""
    head = head.removeprefix(MARK)
    if head.startswith(_POINTER):
        raise CaptureError(f"{name}: a pointer of Git LFS, not the file itself: get that by git lfs pull")
    readable = [one for one in FORMATS if one.reads]
    signed = (one for one in readable if head.startswith(one.signs))  # whatever text is in it
    looking = (one for one in readable if one.looks and re.search(one.looks, head, re.MULTILINE))
    if told := next(signed, None) or next(looking, None):
        return told
    found = by_name(name)
    if found is None or not found.reads or found.signs:
        if not head:
            raise CaptureError(f"{name}: empty, so its format is not known")
        known = ", ".join(one.key for one in FORMATS if one.reads)
        raise CaptureError(f"{name}: not a file of a format that is read: {known}; --format names one")
    return found
