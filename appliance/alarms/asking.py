"""The local socket at which a process acknowledges alarms for its user, and the command's end of it."""

import asyncio
import json
from asyncio import StreamReader
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final

from appliance.local.asking import ask
from appliance.local.lines import record, text, texts
from appliance.local.places import socket_name, sockets
from appliance.local.responder import Responder
from appliance.status.view import View

ALARMS: Final = "alarms"
REQUEST_S: Final = 5.0
_ANSWER_BYTES: Final = 1 << 20


def alarms_socket(only: Collection[str]) -> str:
    """Return the socket's name in the gateway's directory; each process has one."""
    return socket_name(ALARMS, only)


def alarms_sockets(directory: Path | None) -> Iterator[Path]:
    """Yield the sockets in one gateway's directory, or of this user; for root, of services too."""
    return sockets(ALARMS, directory, others=False)


def alarms_responder(path: Path, view: View) -> Responder:
    """Make the socket. Each connection acknowledges one alarm, and gets what that was of."""

    async def answer(reader: StreamReader) -> bytes:
        async with asyncio.timeout(REQUEST_S):
            request = record(await reader.readline())
        name, of, by = (text(request, key) or "" for key in ("alarm", "of", "by"))
        try:
            found = view.acknowledge(name, of, by or "somebody")
        except KeyError:
            return _line({"gateway": view.gateway, "known": False})
        return _line({"gateway": view.gateway, "known": True, "acknowledged": found})

    return Responder(path, answer, "`buscoupler alarms ack` will not see this process")


def acknowledge(path: Path, alarm: str, of: str, by: str, limit_s: float) -> tuple[str, ...] | None:
    """Ask a process to acknowledge an alarm. Return what that was of, None if it does not watch the alarm.

    Raises OSError, or ValueError for an answer that is none.
    """
    line = ask(path, _line({"alarm": alarm, "of": of, "by": by}), limit_s, _ANSWER_BYTES)
    if line is None:
        return None
    answer = record(line)
    return texts(answer, "acknowledged") if answer.get("known") is True else None


def _line(fields: dict[str, object]) -> bytes:
    return json.dumps(fields).encode() + b"\n"
