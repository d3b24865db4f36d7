"""`buscoupler service NAME`: a service of DBP for tests. It answers, and publishes if asked to."""

import argparse
import asyncio
import sys
from datetime import UTC, datetime

from appliance.commandline.arguments import above_zero, port
from appliance.process.running import run_loop
from appliance.process.serve import Stop
from devices.dbp import ports
from devices.dbp.nodes.presence import NodeError
from devices.dbp.nodes.requests import Request
from devices.dbp.nodes.service import Service


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="register by this name")
    catalog_argument(parser)
    parser.add_argument("--host", default="127.0.0.1", help="listen on this address (127.0.0.1)")
    parser.add_argument(
        "--port", type=port, default=ports.BUS, help=f"listen on this port or the next free one ({ports.BUS})"
    )
    parser.add_argument("--function", default="echo, time", metavar="TEXT", help="say that it does this")
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
    async with service:
        print(f"service {service.name} on {', '.join(service.urls)}", flush=True)
        telling = asyncio.ensure_future(_tell(service))
        publishing = asyncio.ensure_future(_publish(service, options.publish))
        await stop.wait()
        telling.cancel()
        publishing.cancel()
    return 0


def _time(_: Request) -> str:
    return datetime.now(UTC).isoformat()


async def _tell(service: Service) -> None:
    """Print whether the catalog has listed the service. After a denial, told once, it goes on trying."""
    told = ""
    while True:
        try:
            await service.listed()
        except NodeError as error:
            if str(error) != told:
                told = str(error)
                print(f"buscoupler service: {told}", file=sys.stderr, flush=True)
            await service.changed()
        else:
            return print(f"{service.name} is listed", flush=True)


async def _publish(service: Service, pause_s: float | None) -> None:
    count = 0
    while pause_s:
        service.publish("tick", str(count).encode())
        count += 1
        await asyncio.sleep(pause_s)
