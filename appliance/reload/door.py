"""The local socket at which a process reloads for its user, and answers with the outcome."""

import asyncio
from pathlib import Path

from appliance.local.door import Door
from appliance.reload.outcome import pack, unpack_request
from appliance.reload.reloader import Reloader

REQUEST_S = 5.0


def reload_door(path: Path, reloader: Reloader) -> Door:
    """Make the socket. Each connection is one request and one outcome."""

    async def answer(reader: asyncio.StreamReader) -> bytes:
        async with asyncio.timeout(REQUEST_S):
            request = unpack_request(await reader.readline())
        if not reloader.is_meant(request):
            return pack(reloader.outcome(meant=False))
        return pack(await reloader.reload())

    return Door(path, answer, "send SIGHUP instead of `buscoupler reload`")
