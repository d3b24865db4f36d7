"""The messages of databases of CAN, sent with plausible signals at their cycle times (`traffic --dbc`)."""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from math import inf
from typing import Final

from appliance.probe.raw import translator_of
from appliance.probe.station import Station
from bridges.protocols.dbc.checks import flaws_of
from bridges.protocols.dbc.database import Unreadable, read
from bridges.protocols.dbc.layout import Message
from bridges.protocols.dbc.plausible import CYCLE_MS, Plausible
from bus.errors import LinkError, why_of
from bus.extras import lacking
from bus.text import plain

_AT_ONCE: Final = 256
_TICK_S: Final = 0.001


def cars_of(paths: Sequence[str]) -> Plausible:
    """Return the source of the messages of databases. Raises `LinkError` for one that cannot be read."""
    messages = list[Message]()
    for path in paths:
        try:
            database = read(path)
        except (OSError, Unreadable) as error:
            raise LinkError(f"{path}: {why_of(error) if isinstance(error, OSError) else error}") from error
        except ImportError as error:
            raise LinkError(lacking(path, error.name or "cantools", "dbc")) from error
        messages += database.messages.values()
        for text in flaws_of(database):
            print(plain(f"buscoupler traffic: {path}: {text}"), file=sys.stderr)
    sendable = [message for message in messages if message.size <= 64 and message.signals]
    if not sendable:
        raise LinkError(f"{', '.join(paths)}: no message in it that has signals and fits in a frame")
    if without := sum(not message.cycle_ms for message in sendable):
        text = f"buscoupler traffic: {without} messages have no cycle time, and are sent every {CYCLE_MS} ms"
        print(plain(text), file=sys.stderr)
    return Plausible(sendable)


async def play(station: Station, cars: Plausible, options: argparse.Namespace) -> float:
    """Send the messages until the time, the count or a signal. Return the seconds that took."""
    loop, translator = asyncio.get_running_loop(), translator_of(options.endpoint)
    start_s, limit_s, most = loop.time(), options.seconds or inf, options.count or sys.maxsize
    while not station.stops and cars.sent < most and (now_s := loop.time() - start_s) < limit_s:
        frames = cars.due(now_s, min(_AT_ONCE, most - cars.sent))
        if frames:
            station.say(translator.receive(frames, now_s))
            await asyncio.sleep(0)
        else:
            pause_s = max(_TICK_S, cars.next_s - now_s)
            await station.until(lambda: False, min(pause_s, limit_s - now_s))
    return loop.time() - start_s
