"""The local socket at which a process answers with its status."""

import json
from asyncio import StreamReader
from pathlib import Path

from appliance.local.responder import Responder
from appliance.status.snapshot import snapshot
from appliance.status.view import View


def status_responder(path: Path, view: View) -> Responder:
    """Make the socket. Each connection gets one snapshot."""

    async def answer(_: StreamReader) -> bytes:
        return json.dumps(snapshot(view)).encode() + b"\n"

    return Responder(path, answer, "`buscoupler top` will not show this process")
