"""A plant in real time has virtual CAN interfaces of the kernel, and never one of hardware.

It takes 8 s in the emulated machine, so it runs by name only:
`python -m tests.kernel.machine .venv/bin/python -m pytest -p no:cacheprovider FILE`
"""

from contextlib import closing
from pathlib import Path

import pytest

from appliance.simulated.real import RealPlant
from bridges.simulate import SimulationError
from tests.helpers.ports import free_port
from tests.kernel.guest.support import PATIENCE_S
from topologies.loading.loader import loads

TEXT = """\
name: t
gateways: {{a: {{node: 1}}}}
buses: {{p: {{on: a, listen: "tcp://127.0.0.1:{}"}}}}
bridges:
  motor: {{on: a, join: [{{bus: p}}, {{can: {{channel: can0, fd: true}}}}]}}
  car:
    on: a
    join: [{{bus: p}}, {{can: {{channel: vcan0}}, protocol: {{raw: {{root: car, send: all}}}}}}]
"""


def interfaces() -> set[str]:
    return {one.name for one in Path("/sys/class/net").iterdir()}


def test_frames_cross_virtual_interfaces_that_are_cut_and_mended_and_go_at_the_end() -> None:
    before = interfaces()
    with closing(RealPlant(loads(TEXT.format(free_port())))) as here:
        assert here.kinds == {"can0": "vcan", "vcan0": "vcan"}
        (made,) = interfaces() - before
        assert made.startswith("plant")
        here.send("can0", "motor", b"1")
        here.expect("p", "motor", b"1", within_s=PATIENCE_S)
        here.send("vcan0", 0x123, b"2")
        here.expect("p", "car", b"2", within_s=PATIENCE_S)
        here.send("p", "motor", b"3")
        here.expect("can0", "motor", b"3", within_s=PATIENCE_S)
        with pytest.raises(SimulationError, match="cannot be cut for a alone"):
            here.cut("can0", of="a")
        here.cut("can0")
        here.mend("can0")
        here.wait(1)
        here.send("p", "motor", b"4")
        here.expect("can0", "motor", b"4", within_s=PATIENCE_S)
    assert interfaces() == before
