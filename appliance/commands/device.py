"""`buscoupler device URL...`: run a raw device."""

import argparse
import time

from appliance.commandline.arguments import busy_poll_argument
from appliance.local.places import process_directory
from appliance.local.responder import WithResponders
from appliance.process.serve import serve
from appliance.status.client import status_socket
from appliance.status.ending import last_ledger
from appliance.status.responder import status_responder
from appliance.status.rows import LinkRow
from appliance.status.view import Besides, View
from bus.urls import SCHEMES
from devices.raw import RawDevice


def arguments(parser: argparse.ArgumentParser) -> None:
    schemes = ", ".join(f"{scheme}://" for scheme in SCHEMES)
    parser.set_defaults(fail=parser.error)
    parser.add_argument("listen", nargs="*", metavar="URL", help=f"listen here: {schemes}")
    parser.add_argument(
        "--dial", action="append", default=[], metavar="URL", help="connect to another bus (repeatable)"
    )
    busy_poll_argument(parser)


def run(options: argparse.Namespace) -> int:
    if not options.listen and not options.dial:
        options.fail("no address: give at least one URL to listen on, or --dial URL")
    device = RawDevice(options.listen, options.dial)

    def announce() -> None:
        for number, link in enumerate(device.links):  # those that listen are first
            here = "on" if link.state == "up" else "waits for"
            print(f"bus {here if number < len(options.listen) else 'dials'} {link.url}", flush=True)

    view = View(
        program="device",
        name=device.links[0].url,
        besides=lambda: Besides(
            device.hubs(), [LinkRow(device.hub, link.name, link) for link in device.links]
        ),
        started_ns=time.time_ns(),
    )
    responder = status_responder(process_directory("device") / status_socket(()), view)
    return serve(
        WithResponders(device, responder),
        announce,
        lambda: last_ledger(device.hubs()),
        busy_poll_us=options.busy_poll_us,
    )
