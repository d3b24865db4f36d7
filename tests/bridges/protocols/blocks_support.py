"""Blocks and telegrams as devices send them, with their checks, for tests."""

from collections.abc import Mapping, Sequence
from typing import Any

from bridges.protocols.crc16 import crc16
from bridges.protocols.protocol import Protocol
from tests.bridges.protocols.spoken_support import told, translator

CHARGER = {
    "PID": "0xA053", "FW": "0159", "SER#": "HQ2132ABCDE", "V": "26410", "I": "-120", "VPV": "38350",
    "PPV": "3", "CS": "5", "MPPT": "1", "OR": "0x00000000", "ERR": "0", "LOAD": "ON", "H19": "6043",
    "H20": "12", "HSDS": "31",
}  # fmt: skip
MONITOR = {"PID": "0xA389", "V": "12801", "T": "---", "P": "-37", "CE": "-2090", "SOC": "978", "TTG": "4710"}
METER = (
    "1-3:0.2.8(50)",
    "0-0:1.0.0(240117081530W)",
    "0-0:96.1.1(4530303331303033303031363939353135)",
    "1-0:1.8.1(004321.075*kWh)",
    "1-0:2.8.1(000000.000*kWh)",
    "0-0:96.14.0(0002)",
    "1-0:1.7.0(00.412*kW)",
    "1-0:99.97.0(1)(0-0:96.7.19)(221105093002W)(0000000301*s)",
    "0-0:96.13.0()",
    "1-0:32.7.0(231.4*V)",
    "0-1:24.1.0(003)",
    "0-1:24.2.1(240117081500W)(02718.281*m3)",
)


def block(fields: Mapping[str, str], **more: str) -> bytes:
    """Return a block of VE.Direct with its checksum."""
    lines = "".join(f"\r\n{label}\t{value}" for label, value in {**fields, **more}.items())
    data = lines.encode("latin-1") + b"\r\nChecksum\t"
    return data + bytes([-sum(data) % 256])


def unsummed(lines: Sequence[str] = METER, name: str = "XMX5LGF0000456123") -> bytes:
    """Return a telegram of a meter up to its `!`."""
    return "".join(f"{line}\r\n" for line in (f"/{name}", "", *lines)).encode("latin-1") + b"!"


def telegram(lines: Sequence[str] = METER, name: str = "XMX5LGF0000456123") -> bytes:
    """Return a telegram of a meter with its CRC."""
    data = unsummed(lines, name)
    return data + b"%04X\r\n" % crc16(data, 0)


def heard(record: Protocol, *pieces: bytes) -> tuple[dict[str, str], dict[str, int], tuple[int, int]]:
    """Return the last value of each pattern, what was rejected, and the counts of blocks and of noise."""
    made = translator(record)
    frames: list[Any] = [found for piece in pieces for found in made.take([piece], 0.0)]
    frames += made.finish(0.0)
    values = {pattern: data.decode() for pattern, data in told(frames, *record.names(), "v", "m")}
    return values, made.wire.stats.rejected, made.take_counts()
