"""The local socket at which a process answers the questions of a trace."""

import asyncio
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Final

from appliance.compose import Appliance
from appliance.local.places import socket_name
from appliance.local.responder import Responder

if TYPE_CHECKING:
    from appliance.explain.tracer import Tracer

TRACE: Final = "trace"
REQUEST_S: Final = 5.0


def trace_socket(only: Collection[str]) -> str:
    """Return the socket's name in the gateway's directory; each process has one."""
    return socket_name(TRACE, only)


def trace_responder(path: Path, appliance: Appliance, file: str, only: Collection[str]) -> Responder:
    """Return the responder of a process that runs `only` of `file`. Each connection is one question."""
    made: Tracer | None = None

    async def answer(reader: asyncio.StreamReader) -> bytes:
        # late: most gateways are never asked, and start faster without
        from appliance.explain.tracer import Tracer
        from appliance.explain.words import pack_answer, unpack_question

        nonlocal made
        made = made or Tracer(appliance, file, only)
        async with asyncio.timeout(REQUEST_S):
            question = unpack_question(await reader.readline())
        return pack_answer(made.answer(question))

    return Responder(path, answer, "`buscoupler explain --live` will not see this process")
