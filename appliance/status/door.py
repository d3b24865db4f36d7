"""The local socket at which a process answers with its status."""

import json
from asyncio import StreamReader
from pathlib import Path

from appliance.local.door import Door
from appliance.status.snapshot import View, snapshot


def status_door(path: Path, view: View) -> Door:
    """Make the socket. Each connection gets one snapshot."""

    async def answer(_: StreamReader) -> bytes:
        return json.dumps(snapshot(view)).encode() + b"\n"

    return Door(path, answer, "`buscoupler top` will not show this process")
