"""The responder that answers with the status of a process."""

import asyncio
from asyncio import StreamReader
from pathlib import Path

from appliance.local.responder import Responder
from appliance.status.turns import as_json, snapshot_in_turns
from appliance.status.view import View


def status_responder(path: Path, view: View) -> Responder:
    """Return a responder at `path` that sends each connection one snapshot."""

    async def answer(_: StreamReader) -> bytes:
        await asyncio.to_thread(view.prepare)
        return await asyncio.to_thread(as_json, await snapshot_in_turns(view))

    return Responder(path, answer, "`buscoupler top` will not show this process")
