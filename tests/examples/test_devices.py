"""The first gateway of a newcomer: a GPS, a meter and a CAN bus, to MQTT, to nanocat and to the page."""

import asyncio
import json
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any

import can
import cantools
import pytest
from pymodbus.server import ModbusSerialServer
from pymodbus.simulator import DataType, SimData, SimDevice

from bus.names import Names
from bus.wire.frame import unpack
from tests.appliance.web.web_support import get, status_of
from tests.bridges.protocols.modbus.ptys import PtyLine
from tests.helpers import ROOT
from tests.helpers.browser import CHROMIUM, browser
from tests.helpers.installed import Installed
from tests.helpers.peers import until, wait
from tests.helpers.ports import free_port
from topologies.loading.loader import loads
from topologies.names import known

EXAMPLE = ROOT / "examples/devices/plant.yaml"
FEED = ROOT / "tests/bridges/protocols/gpsfake_feed.py"
DEBIAN = "/usr/bin/python3"  # python3-gps is there, not in our environment
GPS = b"""\
$GPGGA,092750.000,5321.6802,N,00630.3372,W,1,8,1.03,61.7,M,55.2,M,,*76
$GPRMC,092750.000,A,5321.6802,N,00630.3372,W,0.02,31.66,280511,,,A*43
"""
GROUP = "239.74.163.43"
PLACES = ["/usr/sbin", os.environ.get("PATH", "")]
MOSQUITTO, SUB, PUB, NANOCAT = (
    shutil.which(name, path=os.pathsep.join(PLACES))
    for name in ("mosquitto", "mosquitto_sub", "mosquitto_pub", "nanocat")
)
pytestmark = [
    pytest.mark.skipif(not (MOSQUITTO and SUB and PUB), reason="apt-get install mosquitto mosquitto-clients"),
    pytest.mark.skipif(NANOCAT is None, reason="apt-get install nanomsg-utils"),
    pytest.mark.skipif(
        not Path("/usr/lib/python3/dist-packages/gps").exists(), reason="apt-get install python3-gps"
    ),
    pytest.mark.timeout(240),
]
WANTED = {
    "gps/GP/GGA/lat": (53.361337, "deg"),
    "gps/GP/GGA/lon": (-6.50562, "deg"),
    "gps/GP/GGA/altitude": (61.7, "m"),
    "gps/GP/RMC/speed": (0.02, "kn"),
    "meter/power": (230.4, "W"),
    "meter/limit": (16, "A"),
    "engine/Engine/Speed": (1500, "rpm"),
    "engine/Engine/Coolant": (88, "degC"),
}
"""The last value of each pattern, and its unit."""


@contextmanager
def program(*words: str, **more: Any) -> Iterator["subprocess.Popen[bytes]"]:
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, **more) as process:
        try:
            yield process
        finally:
            process.kill()


class Heard:
    """A reader of what a program prints. `last`: the data of each pattern that came last."""

    def __init__(
        self, process: "subprocess.Popen[bytes]", read: Callable[[bytes], tuple[str, bytes]]
    ) -> None:
        self._read, self._rest = read, b""
        self.last = dict[str, bytes]()
        assert process.stdout is not None
        self._out: IO[bytes] = process.stdout
        os.set_blocking(self._out.fileno(), False)

    def values(self) -> dict[str, tuple[float, str]]:
        """Return what came up to now: the values that are wanted, with their units."""
        data = self._rest + (self._out.read() or b"")
        *lines, self._rest = data.split(b"\n")
        self.last.update(map(self._read, lines))
        read = {pattern: json.loads(self.last[pattern]) for pattern in WANTED if pattern in self.last}
        return {pattern: (one["v"], one["unit"]) for pattern, one in read.items()}


def of_mosquitto(line: bytes) -> tuple[str, bytes]:
    topic, _, data = line.partition(b" ")
    return topic.decode().removeprefix("plant/"), data


def of_nanocat(line: bytes, names: Names) -> tuple[str, bytes]:
    frame = unpack(bytes.fromhex(line.decode().strip('"').replace("\\x", "")))
    return names.show(frame.tokens), bytes(frame.data)


class Meter:
    """A meter of pymodbus on a serial line of pseudo-terminals; the gateway opens `port`."""

    def __init__(self) -> None:
        power, limit = (
            SimData(at, values=values, datatype=DataType.REGISTERS)
            for at, values in ((0, [0x4366, 0x6666]), (10, [160]))
        )
        bits = [SimData(0, values=[False], datatype=DataType.BITS)]
        inputs = [SimData(0, values=[0], datatype=DataType.REGISTERS)]
        self._line = PtyLine()
        self._device = SimDevice(1, (bits, bits, [power, limit], inputs))
        self.port = self._line.path(0)

    async def __aenter__(self) -> "Meter":
        self._server = ModbusSerialServer(self._device, port=self._line.path(1), baudrate=19200)
        await self._server.serve_forever(background=True)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._server.shutdown()  # type: ignore[no-untyped-call]
        self._line.close()


@contextmanager
def engine(port: int) -> Iterator[Callable[[], object]]:
    """Give a function by which an engine, made of python-can and cantools, says its values."""
    database: Any = cantools.database.load_file(ROOT / "examples/engine/engine.dbc")
    message = database.get_message_by_name("Engine")
    said = message.encode({"Speed": 1500, "Coolant": 88, "Torque": 40, "Running": 1})
    frame = can.Message(arbitration_id=message.frame_id, data=said, is_extended_id=False)
    with can.Bus(interface="udp_multicast", channel=GROUP, port=port, hop_limit=0) as bus:
        yield partial(bus.send, frame)


@contextmanager
def receiver(folder: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """Run gpsfake's receiver. Give the name of its terminal, and a function by which it says its log."""
    (folder / "gps.nmea").write_bytes(GPS)
    words = (DEBIAN, str(FEED), str(folder / "gps.nmea"))
    with program(*words, stdin=subprocess.PIPE, bufsize=0) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        yield process.stdout.readline().decode().strip(), partial(process.stdin.write, b"\n")


class Place:
    """The example as a newcomer has it: with the devices and ports of this machine written into it."""

    def __init__(self, folder: Path, gps: str, meter: str, can_port: int) -> None:
        self.bus, self.broker, page = (free_port() for _ in range(3))
        self.page = f"http://127.0.0.1:{page}"
        self.installed = Installed(ROOT / "examples/medium-mqtt", folder / "mqtt")
        (folder / "engine").mkdir()
        shutil.copy(ROOT / "examples/engine/engine.dbc", folder / "engine")
        (folder / "devices").mkdir()
        self.file = folder / "devices/plant.yaml"
        text = EXAMPLE.read_text()
        options = f"{{port: {can_port}, hop_limit: 0}}"
        for there, here in {
            "/dev/ttyUSB0": gps,
            "/dev/ttyUSB1": meter,
            "form: json   ": "form: json, timeout_ms: 5000, poll_ms: 100   ".replace(", ", "\n            "),
            "channel: can0": f"channel: {GROUP}, interface: udp_multicast, options: {options}",
            ":5555": f":{self.bus}",
            ":1883": f":{self.broker}",
            "{address: 127.0.0.1}": f"{{address: 127.0.0.1, status: '{self.page}'}}",
        }.items():
            assert there in text
            text = text.replace(there, here)
        self.file.write_text(text)

    def names(self) -> Names:
        """Return the names of the file; its medium of another distribution adds none."""
        text = re.sub(r"\n      - mqtt:.*", "\n", self.file.read_text(), flags=re.DOTALL)
        return Names([*known(loads(text, str(self.file))), "result"])

    def do(self, *words: str) -> str:
        return self.installed.buscoupler(*words)

    def goes(self, pattern: str, link: str) -> list[str]:
        """Return where a frame goes that comes in by a link, as `explain` says it."""
        told = self.do("explain", pattern, str(self.file), "--from", link)
        return re.findall(r"^    > (\S+ \S+)", told, re.MULTILINE)


async def test_three_wires_reach_mqtt_and_nanocat_with_units_and_a_setting_comes_back(tmp_path: Path) -> None:
    async with Meter() as meter:
        can_port = free_port()
        with receiver(tmp_path) as (gps, speak), engine(can_port) as turn:
            place = Place(tmp_path, gps, meter.port, can_port)
            with outside(place) as (mqtt, cat):

                def heard(wanted: dict[str, tuple[float, str]]) -> bool:
                    speak()
                    turn()
                    return mqtt.values() == cat.values() == wanted

                await until(lambda: heard(WANTED), 60.0, "all values at both")
                await page_shows(place, WANTED)
                await limit_is_written(place, "21.5", mqtt, b"done")
                await until(lambda: heard(WANTED | {"meter/limit": (21.5, "A")}), what="the new limit")
                assert cat.last["meter/limit/result"] == b"done"
                await limit_is_written(place, "99", mqtt, b"refused: 99 is above 32")


@contextmanager
def outside(place: Place) -> Iterator[tuple[Heard, Heard]]:
    """Run the broker, the gateway and the programs outside of it; give what a subscriber and nanocat hear."""
    with program(str(MOSQUITTO), "-p", str(place.broker)):
        wait(lambda: _answers(place.broker))
        run = (sys.executable, "-m", "buscoupler", "run", str(place.file))
        subscribe = (str(SUB), "-p", str(place.broker), "-t", "plant/#", "-v")
        listen = (str(NANOCAT), "--bus", "--hex", "--connect", f"tcp://127.0.0.1:{place.bus}")
        with (
            program(*run, env=place.installed.environment),
            program(*subscribe) as subscriber,
            program(*listen) as nanocat,
        ):
            yield Heard(subscriber, of_mosquitto), Heard(nanocat, partial(of_nanocat, names=place.names()))


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


async def page_shows(place: Place, wanted: dict[str, tuple[float, str]]) -> None:
    """Look for the values in the status, the metrics and, where there is a browser, on the page."""
    values: Any = (await status_of(place.page))["values"]
    rows = {row["pattern"]: (row.get("number"), row["unit"]) for row in values if row["on"] != "plant"}
    assert {pattern: rows.get(pattern) for pattern in wanted} == wanted
    scraped = (await get(place.page, "/metrics")).body.decode()
    for pattern, (value, unit) in wanted.items():
        line = rf'^buscoupler_value{{on="bridge [^"]+",pattern="{pattern}",unit="{unit}"}} (\S+)$'
        assert (found := re.search(line, scraped, re.MULTILINE)), pattern
        assert float(found[1]) == value
    if CHROMIUM is not None:
        await asyncio.to_thread(browsed, place.page, wanted)


def browsed(url: str, wanted: dict[str, tuple[float, str]]) -> None:
    with browser() as page:
        page.open(url)
        for pattern, (value, unit) in wanted.items():
            row = f"(document.body?.innerText ?? '').includes('{pattern}\\t{value:g} {unit}\\t')"
            page.until(row.replace(f"{value:g}", str(value)))


async def limit_is_written(place: Place, value: str, mqtt: Heard, result: bytes) -> None:
    """Publish a setting as a program in the cloud does, and wait for what became of it."""
    topic = "plant/meter/limit/set"
    words = (str(PUB), "-p", str(place.broker), "-t", topic, "-m", value)
    await asyncio.to_thread(subprocess.run, words, check=True, timeout=60)
    await until(lambda: (mqtt.values(), mqtt.last.get("meter/limit/result") == result)[1], what=str(result))


def test_check_show_and_explain_name_all_of_it(tmp_path: Path) -> None:
    place = Place(tmp_path, "/dev/gps", "/dev/meter", free_port())
    checked = place.do("check", str(place.file))
    assert "meter/limit/set acts on uart /dev/meter 19200" in checked
    assert f"can come from mqtt 127.0.0.1:{place.broker}, tcp://127.0.0.1:{place.bus}" in checked
    shown = place.do("show", "--values", str(place.file))
    for pattern, (_, unit) in WANTED.items():
        assert f"{pattern.replace('/GP/', '/TALKER/')}  {unit}" in shown
    for pattern, link in (("gps/GP/GGA/lat", "gps"), ("engine/Engine/Speed", "can")):
        assert place.goes(pattern, link) == [
            "bus plant", f"mqtt 127.0.0.1:{place.broker}", f"listen tcp://127.0.0.1:{place.bus}"
        ]  # fmt: skip
    assert place.goes("meter/limit/set", "mqtt") == [
        "bus plant", "uart /dev/meter", f"listen tcp://127.0.0.1:{place.bus}"
    ]  # fmt: skip
