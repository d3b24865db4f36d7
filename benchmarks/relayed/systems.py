"""The compared gateways between a serial line and TCP: ours with frames and with bytes, and ser2net."""

import shutil
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, NamedTuple

from benchmarks.formats import frame_of
from benchmarks.systems import COMMAND
from bridges.items import EXTENDED, FD, SWITCH
from bridges.media.can import codec as can
from bridges.media.can.socketcan import pack_frame
from bridges.media.uart.codec import encode
from bus.wire.batch import from_payloads

BAUD = 3_000_000
CAN_BITRATE, CAN_DATA_BITRATE = 1_000_000, 5_000_000
CAN_HEAD_BITS, CAN_TAIL_BITS = 48, 36  # at either rate, beside the data; as in bridges/simulate/can.py
FRAMES = 256  # that differ

TOPOLOGY = """\
name: relayed
gateways: {{gw: {{address: 127.0.0.1}}}}
buses: {{shop: {{on: gw, listen: "tcp://127.0.0.1:{bus}"}}}}
bridges:
  line:
    on: gw
    join:
      - {tcp}
      - {line}{spoken}
"""
UART = 'uart: {{port: "{path}", baud: {baud}}}'
CHANNEL = "can0"
CAN = "can: {{channel: {channel}, fd: true, node: 1}}"
BYTES_TCP = (
    "tcp: {{host: 127.0.0.1, port: {port}, mode: listen}}\n"
    "        protocol: {{bytes: {{receive: down, send: up, silence_ms: 0}}}}"
)
BYTES_LINE = "\n        protocol: {bytes: {receive: up, send: down, silence_ms: 0}}"
SER2NET = """\
connection: &line
  accepter: tcp,127.0.0.1,{port}
  connector: serialdev,{path},{baud}n81,local
  options: {{chardelay: {waits}}}
"""


Line = Literal["uart", "can"]
"""A serial line of 3 Mbaud, or CAN FD of 1 and 5 Mbit/s."""


class LineLoad(NamedTuple):
    """A load: `share` of what the line carries, in frames of `size` bytes, to TCP or from it.

    `tick_s`: the line gives what has come at such times, as an adapter on USB does; 0: each frame at once.
    """

    name: str
    title: str
    share: float
    to_tcp: bool
    tick_s: float = 0.0
    size: int = 64
    line: Line = "uart"

    def full_fps(self, form: "Form") -> float:
        """Return the frames a second that the line carries. CAN FD is counted without stuff bits."""
        if self.line == "uart":
            return BAUD / 10 / len(form.line[0])
        return 1 / (CAN_HEAD_BITS / CAN_BITRATE + (8 * 64 + CAN_TAIL_BITS) / CAN_DATA_BITRATE)


class Place(NamedTuple):
    """Where a gateway runs: the line's device, the TCP port, a spare port, a directory for its files."""

    path: str
    port: int
    spare: int
    directory: Path


class Form(NamedTuple):
    """A frame as it is on the line and as it is on TCP, in this order for what goes to TCP."""

    line: list[bytes]
    tcp: list[bytes]


def framed(size: int) -> Form:
    """Return frames in the framings of a serial line and of a bus."""
    frames = [frame_of(size, n) for n in range(FRAMES)]
    line = [encode(frame) for frame in frames]
    assert len({len(one) for one in line}) == 1
    return Form(line, [from_payloads([frame]).keep() for frame in frames])


def in_can(size: int) -> Form:
    """Return frames as those of CAN, one each, and in the framing of a bus."""
    identifier = can.can_id(can.SUBJECT_DEFAULT, 2) | EXTENDED
    frames = [frame_of(size, n) for n in range(FRAMES)]
    parts = [can.segment(frame, n, fd=True) for n, frame in enumerate(frames)]
    coded = [pack_frame((identifier, data, FD | SWITCH)) for (data,) in parts]
    return Form(coded, [from_payloads([frame]).keep() for frame in frames])


def bare(size: int) -> Form:
    """Return the bytes that `framed` has on the line, as they are on both sides."""
    return Form(framed(size).line, framed(size).line)


class Gateway(NamedTuple):
    """A gateway: `command(place)` starts it; `wire` is the framing of its TCP side, `line` its other side."""

    name: str
    label: str
    wire: str
    form: Callable[[int], Form]
    command: Callable[[Place], list[str]]
    missing: Callable[[], str]
    line: Line = "uart"


def _ours(tcp: str, spoken: str, line: str = UART) -> Callable[[Place], list[str]]:
    def command(place: Place) -> list[str]:
        file = place.directory / "line.yaml"
        side = tcp.format(port=place.port)
        bus = place.spare if tcp != BUS else place.port
        line_side = line.format(path=place.path, baud=BAUD, channel=CHANNEL)
        file.write_text(TOPOLOGY.format(bus=bus, tcp=side, line=line_side, spoken=spoken))
        program = [str(COMMAND)]
        if line is CAN:
            program = [sys.executable, "-m", "benchmarks.can_pairs", str(place.directory)]
        return [*program, "run", str(file), "--run-directory", str(place.directory)]

    return command


def _ser2net(waits: bool) -> Callable[[Place], list[str]]:
    def command(place: Place) -> list[str]:
        file = place.directory / "ser2net.yaml"
        text = SER2NET.format(port=place.port, path=place.path, baud=BAUD, waits=str(waits).lower())
        file.write_text(text)
        return ["ser2net", "-n", "-u", "-c", str(file), "-P", str(place.directory / "pid")]

    return command


def _missing() -> str:
    return "" if shutil.which("ser2net") else "ser2net is missing"


def _no_can() -> str:
    return "" if find_spec("can") else "python-can is missing"


BUS = "bus: shop"
GATEWAYS = (
    Gateway("ours", "frames", "sp", framed, _ours(BUS, ""), str),
    Gateway("bytes", "`protocol: bytes`", "tcp", bare, _ours(BYTES_TCP, BYTES_LINE), str),
    Gateway("can", "CAN FD", "sp", in_can, _ours(BUS, "", CAN), _no_can, "can"),
    Gateway("ser2net", "ser2net", "tcp", bare, _ser2net(True), _missing),
    Gateway("ser2net-now", "ser2net, `chardelay: false`", "tcp", bare, _ser2net(False), _missing),
)
