"""A plant of two gateways on free ports, and one whose devices speak protocols."""

from tests.helpers import ROOT
from tests.helpers.ports import free_port

PLANT = ROOT / "examples/simulated/plant.yaml"
SPOKEN = """\
name: t
gateways: {{gw: {{node: 1}}}}
buses: {{p: {{on: gw, listen: "tcp://127.0.0.1:{}"}}}}
bridges:
  frames:
    on: gw
    join:
      - bus: p
      - can: {{channel: can0}}
        protocol: {{raw: {{root: car, send: all}}}}
  line:
    on: gw
    join:
      - bus: p
      - uart: {{port: /dev/ttyS0, baud: 9600}}
"""


def text() -> str:
    """Return the example's file on ports that are free."""
    found = PLANT.read_text().replace("${BROKER_PORT:-25731}", str(free_port()))
    return found.replace("${HALL_PORT:-25732}", str(free_port()))


def spoken() -> str:
    return SPOKEN.format(free_port())
