"""`buscoupler catalog [URL...]`: a catalog, which lists services and tells clients where they are."""

import argparse

from appliance.alone import serve_alone
from appliance.commandline.arguments import busy_poll_argument
from devices.dbp import ports
from devices.dbp.catalog.device import CatalogSpec
from devices.dbp.catalog.service import Catalog

NAME = "catalog"
DEFAULT = f"tcp://127.0.0.1:{ports.CATALOG}"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "listen", nargs="*", metavar="URL",
        help=f"listen here: tcp://HOST:PORT (default: {DEFAULT}, or the next port that is free)",
    )  # fmt: skip
    parser.add_argument(
        "--strict", action="store_true",
        help="take services only with all that the protocol asks for: function and heartbeat interval too",
    )  # fmt: skip
    parser.add_argument(
        "--records", metavar="FILE",
        help="the file in which the listed services survive a restart, or none (default: one in the state "
        "directory, named by the first URL)",
    )  # fmt: skip
    parser.add_argument(
        "--no-beacon", action="store_true",
        help="do not announce it once a second on the LAN, where `find` hears it",
    )  # fmt: skip
    busy_poll_argument(parser)


def run(options: argparse.Namespace) -> int:
    listen = tuple(options.listen) or (DEFAULT,)
    spec = CatalogSpec(
        on="",
        catalog=listen,
        strict=options.strict,
        records=options.records,
        beacon=not options.no_beacon,
    )
    catalog = Catalog(NAME, spec, tries=1 if options.listen else ports.TRIES)
    return serve_alone(catalog, "catalog", "catalog", options.busy_poll_us)
