"""The asking of other gateways for their notes, by local sockets and over HTTP, in threads of its own."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from appliance.local.asking import answers
from appliance.local.places import runtime_directory
from appliance.plant.note import GATEWAY, NOTE_BYTES, Note, note_of, read_note
from appliance.plant.places import PagePlace
from appliance.status.client import ANSWER_BYTES, read_status, status_socket
from appliance.status.overlay import own_marks, shown_marks
from bus.errors import words_of
from bus.machine.aside import in_thread
from bus.machine.files import read_text

ASK_S: Final = 2.0
"""The time that a gateway may take for its answer."""
AT_ONCE: Final = 8


class GatewayAnswer(NamedTuple):
    """The answer of a gateway: its note, or `why` there is none.

    `ahead_ms` is by how much its clock is ahead of ours, known up to half of `took_ms`. `since` is when it
    was heard last, "" if it does not announce itself.
    """

    gateway: str
    note: Note | None = None
    why: str = ""
    ahead_ms: int = 0
    took_ms: int = 0
    since: str = ""


async def ask_others(
    topology: str, gateways: Sequence[str], places: Sequence[PagePlace]
) -> dict[str, GatewayAnswer]:
    """Return what other gateways of a topology say, by their name.

    Those on this machine are asked at their sockets, others at their pages. A gateway that cannot be asked is
    not among them.
    """
    loop = asyncio.get_running_loop()
    here = await in_thread(loop, lambda: list(_local(topology, gateways)))
    found = {heard.gateway: heard for heard in here}
    left = [place for place in places if place.gateway not in found]
    for start in range(0, len(left), AT_ONCE):
        asked = [in_thread(loop, partial(ask_page_of, place)) for place in left[start : start + AT_ONCE]]
        found |= {heard.gateway: heard for heard in await asyncio.gather(*asked)}
    return found


def _local(topology: str, gateways: Sequence[str]) -> Iterator[GatewayAnswer]:
    """Yield what gateways of this user on this machine say at their sockets."""
    root = runtime_directory() / topology
    paths = {root / name / status_socket(()): name for name in gateways}
    there = [path for path in paths if path.is_socket()]
    begun_ns = time.time_ns()
    for path, data in answers(there, b"", ASK_S, ANSWER_BYTES):
        if not isinstance(data, OSError):
            yield _heard(paths[path], data, begun_ns, path)


def _heard(gateway: str, data: bytes, begun_ns: int, path: Path) -> GatewayAnswer:
    took_ns = time.time_ns() - begun_ns
    try:
        status = read_status(str(path), data)
        note = note_of(status, shown_marks(own_marks(status)))
    except ValueError as error:
        return GatewayAnswer(gateway, None, str(error))
    return timed(gateway, note, begun_ns, took_ns)


def ask_page_of(place: PagePlace) -> GatewayAnswer:
    """Return what the gateway says at its page. It raises nothing."""
    from appliance.status.remote import get  # late: it loads http.client

    try:
        token = read_text(place.token_file).strip() if place.token_file else ""
        begun_ns = time.time_ns()
        note = read_note(get(place.url, GATEWAY, place.ca_file, ASK_S, NOTE_BYTES, token, place.own))
        took_ns = time.time_ns() - begun_ns
        return timed(place.gateway, {**note, "page": place.url}, begun_ns, took_ns)
    except OSError as error:
        return GatewayAnswer(place.gateway, None, f"{place.url}: {words_of(error)}")
    except ValueError as error:
        return GatewayAnswer(place.gateway, None, str(error))


def timed(gateway: str, note: Note, begun_ns: int, took_ns: int) -> GatewayAnswer:
    """Return a note that was asked for at `begun_ns`, with the difference of its clock."""
    if note["gateway"] != gateway:
        return GatewayAnswer(gateway, None, f"{note['gateway'] or 'another program'} answers in its place")
    ahead_ms = (note["time_ns"] - begun_ns - took_ns // 2) // 1_000_000
    return GatewayAnswer(gateway, note, "", ahead_ms, took_ns // 1_000_000)
