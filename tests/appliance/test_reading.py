"""The last values of the devices of a side: in the status, in metrics, in `top`, and after a reload."""

import asyncio
from pathlib import Path
from typing import Any

import can

from appliance.compose import Appliance
from appliance.status.snapshot import snapshot
from appliance.status.terminal import page
from appliance.web.metrics import render
from tests.helpers.appliances import appliance_of, reloaded
from tests.helpers.peers import until
from topologies.loading.loader import loads
from topologies.picture.show import show

TEXT = """\
name: t
gateways: {{gw: {{status: {{serve: false}}}}}}
buses: {{p: {{on: gw}}}}
bridges:
  b:
    on: gw
    join: [bus: p, {{can: {{channel: readings, interface: virtual}}, protocol: {0}, prefix: hall}}]
"""
SIGNAL = ' SG_ {0} : {1}|16@1+ (1,0) [0|9000] "rpm" X\n'
ON = "bridge b, can:virtual:readings"


def values(appliance: Appliance) -> list[dict[str, Any]]:
    return [row for row in snapshot(appliance.view())["values"] if row["on"] == ON]


async def test_a_side_shows_what_its_devices_say_with_units_without_any_cache(tmp_path: Path) -> None:
    file = tmp_path / "engine.dbc"
    file.write_text(f'VERSION ""\nBU_: X\nBO_ 5 Engine: 8 X\n{SIGNAL.format("Rpm", 0)}')
    topology = loads(TEXT.format(f"{{dbc: {{file: {file}}}}}"), "t.yaml")
    appliance = appliance_of(topology, "gw")
    appliance.open(asyncio.get_running_loop())
    with can.Bus("readings", "virtual") as device:

        def say(count: int, data: bytes) -> bool:
            device.send(can.Message(arbitration_id=5, data=data, is_extended_id=False))
            return len(values(appliance)) == count

        try:
            await until(lambda: say(1, b"\x64" + bytes(7)))
            (row,) = values(appliance)
            known = {key: row[key] for key in ("pattern", "data", "unit", "number", "low", "high")}
            assert known == {
                "pattern": "hall/can/Engine/Rpm", "data": "100", "unit": "rpm", "number": 100, "low": 0,
                "high": 9000,
            }  # fmt: skip
            status = snapshot(appliance.view())
            scraped = render(status, "")[0].decode()
            assert f'buscoupler_value{{on="{ON}",pattern="hall/can/Engine/Rpm",unit="rpm"}} 100.0' in scraped
            assert "buscoupler_values_left_out 0.0" in scraped
            assert "hall/can/Engine/Rpm 100 rpm, 0." in page(status, None, None)
            reloaded(appliance, loads(TEXT.format("raw"), "t.yaml"))
            await until(lambda: say(0, bytes(8)))
            assert not any(one["kind"] == "readings" for one in snapshot(appliance.view())["brokers"])
        finally:
            appliance.close()


def test_show_lists_the_first_values_of_a_side(tmp_path: Path) -> None:
    file = tmp_path / "engine.dbc"
    signals = "".join(SIGNAL.format(f"S{number}", 16 * number) for number in range(24))
    file.write_text(f'VERSION ""\nBU_: X\nBO_ 5 Engine: 48 X\n{signals}')
    drawn = show(loads(TEXT.format(f"{{dbc: {{file: {file}}}}}"), "t.yaml")).splitlines()
    assert sum("rpm  0 to 9000" in one for one in drawn) == 20
    assert "and 4 more: --values" in drawn[-1]
