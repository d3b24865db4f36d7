"""The responder that answers with the status of a process."""

import asyncio
import json
from asyncio import StreamReader
from pathlib import Path

from appliance.local.responder import Responder
from appliance.status.snapshot import snapshot
from appliance.status.view import View


def status_responder(path: Path, view: View) -> Responder:
    """Return a responder at `path` that sends each connection one snapshot."""

    async def answer(_: StreamReader) -> bytes:
        await asyncio.to_thread(view.prepare)
        return json.dumps(snapshot(view)).encode() + b"\n"

    return Responder(path, answer, "`buscoupler top` will not show this process")
