"""A tap that records what is on a CAN bus, and the log of candump that is exported from it."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import can

from appliance.probe.files import export_frames
from devices.child import settle
from tests.helpers.appliances import appliance_of
from tests.helpers.peers import Ear, until
from tests.helpers.ports import free_channel
from topologies.loading.loader import loads

TEXT = """\
name: t
gateways: {{gw: {{status: {{serve: false}}}}}}
buses: {{p: {{on: gw}}}}
bridges:
  b:
    on: gw
    join:
      - bus: p
      - can: {{channel: {0}, interface: virtual{1}}}
        protocol: {{raw: {{root: car, send: all}}}}
devices: {{recorder: {{on: gw, tap: b, directory: "{2}", yields: false, wire: {3}}}}}
"""


async def exported(directory: Path, came: Sequence[can.Message], went: Sequence[bytes]) -> Path:
    """Return the log of a tap that recorded frames of a bus, and messages that left for it."""
    channel = free_channel()
    text = TEXT.format(channel, ", fd: true", directory / "capture", "true")
    appliance = appliance_of(loads(text, "t.yaml"), "gw")
    appliance.open(asyncio.get_running_loop())
    bridge, ear = appliance.parts["bridge b"], Ear(appliance.parts["bus p"].hub)
    try:
        with can.Bus(channel, "virtual", fd=True) as device:
            await until(lambda: all(link.state == "up" for link in bridge.links))
            for message in came:
                device.send(message)
            await until(lambda: len(ear.heard) == len(came))
            ear.say(*went)
            for _ in went:
                await until(lambda: device.recv(0) is not None)
    finally:
        appliance.close()
    assert await asyncio.to_thread(settle, 50)
    assert export_frames(directory / "capture", str(directory / "can.log"), "candump") == 0
    return directory / "can.log"
