"""`buscoupler service NAME`: a service of DBP for tests. It answers, and publishes if asked to."""

import argparse
import asyncio
import random
import sys
from contextlib import suppress
from datetime import UTC, datetime

from appliance.commandline.arguments import above_zero, free_text, port
from appliance.process.running import run_loop
from appliance.process.serve import Stop
from bus.backoff import Backoff
from bus.errors import LinkError
from bus.transports.binding import RETRY_MAX_S, RETRY_MIN_S, is_absent
from devices.dbp import ports
from devices.dbp.nodes.presence import NodeError
from devices.dbp.nodes.requests import Request
from devices.dbp.nodes.service import Service

_PATIENCE_S = 2.0  # after which it is told why the service is not listed


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="register by this name")
    catalog_argument(parser)
    parser.add_argument("--host", default="127.0.0.1", help="listen on this address (127.0.0.1)")
    parser.add_argument(
        "--port", type=port, default=ports.BUS, help=f"listen on this port or the next free one ({ports.BUS})"
    )
    parser.add_argument(
        "--function", type=free_text, default="echo, time", metavar="TEXT", help="say that it does this"
    )
    parser.add_argument(
        "--interval", type=above_zero, default=1.0, metavar="S", help="seconds between heartbeats (1)"
    )
    parser.add_argument(
        "--publish", type=above_zero, metavar="S", help="publish a counter on the topic tick every S seconds"
    )


def catalog_argument(parser: argparse.ArgumentParser) -> None:
    """Add the option for the URL of the catalog."""
    parser.add_argument(
        "--catalog", metavar="URL", help="the catalog, tcp://HOST:PORT (default: one that announces itself)"
    )


def run(options: argparse.Namespace) -> int:
    return run_loop(_serve(options))


async def _serve(options: argparse.Namespace) -> int:
    service = Service(
        options.name,
        {"echo": lambda request: request.body, "time": _time},
        catalog=options.catalog,
        host=options.host,
        port=options.port,
        function=options.function,
        topics=("tick",) if options.publish else (),
        publishes=bool(options.publish),
        interval_s=options.interval,
    )
    stop = Stop(asyncio.get_running_loop())
    try:
        if await _opened(service, stop):
            print(f"service {service.name} on {', '.join(service.urls)}", flush=True)
            telling = asyncio.ensure_future(_tell(service))
            publishing = asyncio.ensure_future(_publish(service, options.publish))
            await stop.wait()
            telling.cancel()
            publishing.cancel()
    finally:
        await service.close()
    return 0


async def _opened(service: Service, stop: Stop) -> bool:
    """Listen, as soon as the address is there. Return False if the process must stop before."""
    told, pauses = "", Backoff(RETRY_MIN_S, RETRY_MAX_S, random.uniform)
    while not stop.is_set():
        try:
            await service.open()
        except LinkError as error:
            if not isinstance(error.__cause__, Exception) or not is_absent(error.__cause__):
                raise
            told = _say(f"{error}; will go on trying", told)
            with suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), pauses.next_s())
        else:
            return True
    return False


def _say(words: str, told: str) -> str:
    """Print words, unless they are those that were told last. Return them."""
    if words != told:
        print(f"buscoupler service: {words}", file=sys.stderr, flush=True)
    return words


def _time(_: Request) -> str:
    return datetime.now(UTC).isoformat()


async def _tell(service: Service) -> None:
    """Print whether the catalog has listed the service, or why not yet: it goes on trying."""
    told = ""
    while True:
        try:
            async with asyncio.timeout(_PATIENCE_S):
                await service.listed()
        except NodeError as error:
            told = _say(str(error), told)
            await service.changed()
        except TimeoutError:
            if service.fault:
                told = _say(f"{service.name} is not listed yet: {service.fault}", told)
        else:
            return print(f"{service.name} is listed", flush=True)


async def _publish(service: Service, pause_s: float | None) -> None:
    count = 0
    while pause_s:
        service.publish("tick", str(count).encode())
        count += 1
        await asyncio.sleep(pause_s)
