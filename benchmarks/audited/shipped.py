"""The shipped topologies as files of plants, with own ports, lines and certificates, and a recorder each.

What this machine may lack is changed: hardware CAN is a multicast group, a serial port is a pseudo-terminal,
and sides on I2C are left out.
"""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from tests.appliance.examples import relocated
from tests.helpers import ROOT
from tests.helpers.certificates import own_tls
from tests.helpers.ports import free_port
from topologies.loading.loader import loads

if TYPE_CHECKING:
    from topologies.model import Topology

FILES: Final = {
    **{path.stem: path for path in sorted((ROOT / "topologies").glob("*.yaml"))},
    "alarms": ROOT / "examples/alarms/plant.yaml",
    "engine": ROOT / "examples/engine/engine.yaml",
    "mqtt": ROOT / "examples/medium-mqtt/topology.yaml",
    "simulated": ROOT / "examples/simulated/plant.yaml",
}
_CAN: Final = (
    "can: {{interface: udp_multicast, channel: 239.74.163.77, fd: true, "
    "options: {{port: {port}, hop_limit: 0}}}}"
)
_MQTT_SIDE: Final = re.compile(r"\n +- mqtt:(\n +[a-z_]+: .*)+")


_STAND_IN: Final = "\n      - tcp: {host: 127.0.0.1, port: 1, mode: listen}"


class Files(NamedTuple):
    """The `text` of a plant's topology, and the `topology` without what only an example's package knows."""

    text: str
    topology: "Topology"


def made(name: str, directory: Path) -> Files:
    """Return the files of a shipped topology, whose plant works in a directory."""
    text = relocated(_here(FILES[name].read_text(), directory), directory)
    text = text.replace("engine.dbc", str(FILES["engine"].with_name("engine.dbc")))
    plain = loads(_MQTT_SIDE.sub(_STAND_IN, text), f"{name}.yaml")
    taps = "".join(_recorder(plain, gateway, directory / "capture") for gateway in plain.gateways)
    text = text if "\ndevices:\n" in text else f"{text}\ndevices:\n"
    return Files(text.replace("\ndevices:\n", f"\ndevices:\n{taps}", 1), plain)


def _here(text: str, directory: Path) -> str:
    """Put what needs hardware or other machines onto this one."""
    text = re.sub(r"(?<=: )10\.0\.0\.1[12]\b", "127.0.0.1", text)
    text = re.sub(r"0\.0\.0\.0:\d+|127\.0\.0\.1:(5555|1883)", lambda _: f"127.0.0.1:{free_port()}", text)
    text = re.sub(r"\$\{\w+_PORT:-\d+\}", lambda _: str(free_port()), text)
    text = re.sub(r"can: \{channel: (can0|\{gw-a).*\}", _CAN.format(port=free_port()), text)
    text = re.sub(r"\n.*i2c: .*", "", text)
    text = re.sub(r"\n  sensor:\n(    .*\n)+", "\n", text)
    text = text.replace("interface: eth0", "interface: lo, hops: 0").replace(", parity: E", "")
    text = text.replace("/dev/ttyUSB0", f"{directory}/line-a")
    if "/etc/buscoupler/" in text:
        tls = own_tls(directory)
        text = text.replace("/etc/buscoupler/gateway.pem", str(tls.cert_file))
        text = text.replace("/etc/buscoupler/ca.pem", str(tls.ca_file))
    return text.replace("/var/lib/buscoupler/capture", str(directory / "own-capture"))


def _recorder(topology: "Topology", gateway: str, directory: Path) -> str:
    """Return the tap of all buses and bridges of a gateway."""
    parts = [name for name, bus in topology.buses.items() if bus.on == gateway]
    parts += [name for name, bridge in topology.bridges.items() if gateway in bridge.on]
    return f'  rig-{gateway}: {{on: {gateway}, tap: [{", ".join(parts)}], directory: "{directory}"}}\n'
