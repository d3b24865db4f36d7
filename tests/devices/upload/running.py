"""A gateway that runs with an upload."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from appliance.compose import Appliance
from devices.child import settle
from devices.upload.service import Upload
from tests.devices.upload.captures import GATEWAY
from tests.helpers.appliances import appliance_of
from tests.helpers.peers import until
from topologies.loading.loader import loads

WAIT_S = 60.0


def text(root: Path, to: object, more: str = "") -> str:
    return (
        f"name: t\ngateways: {{{GATEWAY}: }}\n"
        f'devices: {{copies: {{on: {GATEWAY}, upload: "{root}", to: "{to}", every_s: 1{more}}}}}\n'
    )


async def run(written: str, ready: Callable[[Upload], bool]) -> Upload:
    """Run a gateway with an upload until it is `ready`, and until its process has ended."""
    appliance = appliance_of(loads(written, "t.yaml"), GATEWAY)
    appliance.open(asyncio.get_running_loop())
    try:
        upload = service(appliance)
        await until(lambda: ready(upload), WAIT_S)
    finally:
        appliance.close()
    assert await asyncio.to_thread(settle, 50)
    return upload


def service(appliance: Appliance) -> Upload:
    (found,) = (link for part in appliance.parts.values() for link in part.links if isinstance(link, Upload))
    return found


def idle(upload: Upload) -> bool:
    return upload.counts["files"] > 0 and upload.counts["waiting"] == 0
