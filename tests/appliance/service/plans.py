"""The plan of a service on a gateway of a small plant, and what its files say."""

import shutil

import pytest

from appliance.service.plan import Plan, plan_of
from appliance.service.texts import files_of
from topologies.loading.loader import loads

UNIT = "/etc/systemd/system/buscoupler.service"


RULES = "/etc/udev/rules.d/99-buscoupler.rules"


TEXT = """\
name: plant
gateways:
  gw-a: {address: 127.0.0.1, node: 1}
  gw-b: {address: 127.0.0.1, node: 2}
keys: [/etc/buscoupler/plant.key]
brokers:
  main: {on: gw-a, listen: "tcp://127.0.0.1:9942"}
buses:
  shop: {on: gw-a, listen: ["tcp://127.0.0.1:5555", "ipc:///run/plant/bus.sock"]}
  other: {on: gw-b, listen: ["tcp://127.0.0.1:80"]}
bridges:
  machines:
    on: gw-a
    join:
      - bus: shop
      - uart: {port: /dev/serial/by-id/usb-FTDI_A9-if00, baud: 115200}
      - can: {channel: can0}
      - i2c: {bus: 1, targets: [0x42], poll_ms: 5}
devices:
  recorder: {on: gw-a, tap: [shop], directory: /srv/capture}
"""


needs_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="needs systemd-analyze (Debian: systemd)"
)


def plan(gateway: str = "gw-a", text: str = TEXT, name: str = "buscoupler") -> Plan:
    """Return the plan of the service of a gateway."""
    return plan_of(loads(text, "t.yaml"), gateway, name, ["/usr/bin/true"], "/etc/buscoupler/plant.yaml")


def unit(gateway: str = "gw-a", text: str = TEXT) -> list[str]:
    """Return the lines of the unit of a gateway."""
    return files_of(plan(gateway, text))[UNIT].splitlines()


def values(lines: list[str], key: str) -> list[str]:
    """Return the values of a key in lines of a unit."""
    return [line.partition("=")[2] for line in lines if line.startswith(f"{key}=")]
