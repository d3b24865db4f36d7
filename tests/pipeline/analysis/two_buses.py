"""A gateway with the buses `hall` and `yard`, which a device of it records."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, TypeVar

from appliance.compose import Appliance
from devices.child import settle
from tests.helpers.appliances import appliance_of
from tests.helpers.ports import free_port
from topologies.loading.loader import loads

T = TypeVar("T")
_TEXT: Final = """\
name: two
gateways: {{gw: {{address: 127.0.0.1}}}}
buses:
  hall: {{on: gw, listen: "tcp://127.0.0.1:{0}"}}
  yard: {{on: gw, listen: "tcp://127.0.0.1:{1}"}}
"""


def recorded(more: str, directory: Path, scene: Callable[[Appliance, str, str], Awaitable[T]]) -> T:
    """Run a scene on the gateway, and wait for the end of its recorder. Return the scene's result.

    `more` has the further lines of the topology, in which `{directory}` is where the device writes. A scene
    gets the appliance and the URLs of both buses.
    """
    text = _TEXT.format(free_port(), free_port()) + more.format(directory=directory)
    result = asyncio.run(_played(text, scene))
    assert settle(50)
    return result


async def _played(text: str, scene: Callable[[Appliance, str, str], Awaitable[T]]) -> T:
    appliance = appliance_of(loads(text, "t.yaml"), "gw")
    appliance.open(asyncio.get_running_loop())
    hall, yard = (str(appliance.topology.buses[name].listen[0].url) for name in ("hall", "yard"))
    try:
        return await scene(appliance, hall, yard)
    finally:
        appliance.close()
