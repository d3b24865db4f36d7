"""The local socket at which a process reloads for its user, and answers with the outcome.

It is not the socket of the status, which answers whoever connects and reads nothing.
"""

import asyncio
from pathlib import Path

from appliance.local.responder import Responder
from appliance.reload.outcome import pack, unpack_request
from appliance.reload.reloader import Reloader
from bus.machine.aside import aside

REQUEST_S = 5.0


def reload_responder(path: Path, reloader: Reloader) -> Responder:
    """Make the socket. Each connection is one request and one outcome."""

    async def answer(reader: asyncio.StreamReader) -> bytes:
        async with asyncio.timeout(REQUEST_S):
            request = unpack_request(await reader.readline())
        if not await aside(lambda: reloader.is_meant(request)):
            return pack(reloader.outcome(meant=False))
        return pack(await reloader.reload())

    return Responder(path, answer, "send SIGHUP instead of `buscoupler reload`")
