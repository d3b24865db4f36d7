"""`buscoupler broker URL...`: a TMQ broker, which also leases bridges that stand in for each other."""

import argparse
import time

from appliance.alone import say_addresses
from appliance.commandline.arguments import busy_poll_argument
from appliance.local.places import process_directory
from appliance.local.responder import WithResponders
from appliance.process.serve import serve
from appliance.status.client import status_socket
from appliance.status.ending import last_ledger
from appliance.status.responder import status_responder
from appliance.status.rows import waiting_rows
from appliance.status.view import Besides, View
from bus.keys import ring_of
from bus.leases.service import LeasingBroker
from bus.leases.settings import BrokerSettings
from bus.machine.aside import within
from bus.schema import check_fields, settings
from bus.tmq.address import is_secure
from bus.transports.options import Tls, check_tls


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "listen", nargs="+", metavar="URL", help="listen here: tcp://HOST:PORT, or tls+tcp://"
    )
    parser.add_argument(
        "--peer", action="append", default=[], metavar="URL",
        help="another broker, to share registrations with (repeatable; each names the others)",
    )  # fmt: skip
    parser.add_argument(
        "--keys", action="append", default=[], metavar="FILE",
        help="a key of the gateways: leases ask for signed claims (several: the first signs, all verify)",
    )  # fmt: skip
    for name, text in (("cert", "our certificate"), ("key", "its key"), ("ca", "trust this authority")):
        parser.add_argument(f"--tls-{name}", metavar="FILE", help=f"{text} (tls+tcp://)")
    parser.add_argument(
        "--require-peer-cert", action="store_true",
        help="let in over TLS only who has a certificate that --tls-ca signed: claims then count as signed",
    )  # fmt: skip
    for key, one in settings(BrokerSettings).items():
        flag = f"--{key.replace('_', '-')}"
        if isinstance(one.field.default, bool):
            parser.add_argument(flag, action="store_true", help=one.doc)
        else:
            words = one.doc if one.field.default is None else f"{one.doc} ({one.field.default})"
            parser.add_argument(flag, type=int, default=one.field.default, metavar="N", help=words)
    busy_poll_argument(parser)
    parser.set_defaults(fail=parser.error)


def settings_of(options: argparse.Namespace) -> BrokerSettings:
    """Return the settings of the broker, from the arguments. Wrong use ends the program with status 2."""
    made = BrokerSettings(**{key: getattr(options, key) for key in settings(BrokerSettings)})
    try:
        check_fields(made)
    except ValueError as error:
        options.fail(str(error))
    return made


def tls_of(options: argparse.Namespace) -> dict[str, Tls]:
    """Return the certificates of each address with TLS. Wrong use ends the program with status 2."""
    made = Tls(options.tls_ca, options.tls_cert, options.tls_key, require_peer_cert=options.require_peer_cert)
    secure = [url for url in options.listen if is_secure(url)]
    try:
        for url in secure:
            check_tls(url, made, listens=True)
    except ValueError as error:
        options.fail(str(error))
    if made != Tls() and not secure:
        options.fail("--tls-... and --require-peer-cert are for tls+tcp://")
    return dict.fromkeys(secure, made)


def run(options: argparse.Namespace) -> int:
    chosen, tls = settings_of(options), tls_of(options)
    service = within(lambda: LeasingBroker(options.listen, options.peer, chosen, ring_of(options.keys), tls))

    def announce() -> None:
        say_addresses("broker", service.broker.urls, service.broker.bindings)

    view = View(
        program="broker",
        name=service.broker.urls[0],
        besides=lambda: Besides(
            service.hubs(), waiting_rows(service.hub, service.broker.bindings), (service,)
        ),
        started_ns=time.time_ns(),
    )
    responder = status_responder(process_directory("broker") / status_socket(()), view)
    return serve(
        WithResponders(service, responder),
        announce,
        lambda: last_ledger(service.hubs()),
        busy_poll_us=options.busy_poll_us,
    )
