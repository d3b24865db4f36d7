"""`buscoupler cert new|gateway|renew|show`: an authority of a plant, and the certificates of its gateways."""

import argparse
import sys
from datetime import UTC, datetime
from json import dumps

from bus.errors import BusError
from bus.extras import lacking
from bus.text import whole_in

_DAYS_MAX = 36500


def arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    new = actions.add_parser("new", help="make an authority: FILE for all gateways, its key for none")
    gateway = actions.add_parser("gateway", help="make a certificate and a key for one gateway")
    renew = actions.add_parser("renew", help="give a certificate new dates; the old is kept as FILE.old")
    show = actions.add_parser("show", help="show names, hosts and ends; the status is 1 if one ends soon")
    for one in (new, gateway, renew):
        one.add_argument("file", metavar="FILE", help="the certificate; its key is beside it, as .key")
        one.add_argument("--key", metavar="FILE", help="another place of its key")
    for one, days in ((new, 3650), (gateway, 825), (renew, None)):
        words = f"it lasts N days ({days or 'as before'})"
        one.add_argument("--days", type=_days, default=days, metavar="N", help=words)
    for one in (new, gateway):
        one.add_argument("--name", metavar="NAME", help="its common name; FILE's by default")
    gateway.add_argument(
        "--host", action="append", required=True, metavar="HOST", help="address or name that peers dial"
    )
    for one in (gateway, renew):
        more = "; none for its own renewal" if one is renew else ", which signs"
        one.add_argument("--ca", required=one is gateway, metavar="FILE", help=f"the authority{more}")
        one.add_argument("--ca-key", metavar="FILE", help="its key; beside it by default, as .key")
    show.add_argument("file", nargs="+", metavar="FILE", help="certificates in PEM")
    show.add_argument("--json", action="store_true", help="print one JSON document for each certificate")


def run(options: argparse.Namespace) -> int:
    try:
        import cryptography  # noqa: F401
    except ImportError:
        print(f"buscoupler cert: {lacking('it', 'cryptography', 'cert')}", file=sys.stderr)
        return 1
    try:
        return _ACTIONS[options.action](options)
    except BusError as error:
        print(f"buscoupler cert: {error}", file=sys.stderr)
        return 1


def _days(text: str) -> int:
    days = whole_in(text, _DAYS_MAX)
    if not days:
        raise argparse.ArgumentTypeError(f"{text[:40]}: 1 to {_DAYS_MAX} days")
    return days


def _name(options: argparse.Namespace) -> str:
    from pathlib import Path

    return options.name if options.name is not None else Path(options.file).stem


def _new(options: argparse.Namespace) -> int:
    from appliance.certificates import files, making

    key = options.key or files.key_path(options.file)
    files.write(making.authority(_name(options), _now(), options.days), options.file, key)
    print(
        f"{options.file}: copy it to all gateways; keep {key} apart from them: who has it can join the plant"
    )
    return 0


def _gateway(options: argparse.Namespace) -> int:
    from appliance.certificates import files, making

    by = files.read(options.ca, options.ca_key or files.key_path(options.ca))
    key = options.key or files.key_path(options.file)
    made = making.gateway(_name(options), options.host, by, _now(), options.days)
    files.write(made, options.file, key)
    print(f"{options.file}, {key}: copy both to that gateway only")
    return 0


def _renew(options: argparse.Namespace) -> int:
    from appliance.certificates import files, making

    old = files.read(options.file, options.key or files.key_path(options.file))
    by = old if options.ca is None else files.read(options.ca, options.ca_key or files.key_path(options.ca))
    made = making.renewed(old, by, _now(), options.days or making.days_of(old))
    files.replace(made, options.file)
    ends = (
        f"{old.certificate.not_valid_after_utc:%Y-%m-%d} to {made.certificate.not_valid_after_utc:%Y-%m-%d}"
    )
    place = "on all gateways, with a copy," if by.certificate == old.certificate else "on the gateway"
    print(f"{options.file}: its end moved from {ends}; `buscoupler reload` {place} uses it")
    return 0


def _show(options: argparse.Namespace) -> int:
    from appliance.certificates import files, telling

    good = True
    for file in options.file:
        for found in files.read_all(file):
            row = telling.record(found, _now())
            good = good and row["state"] == "valid"
            print(dumps({"file": file} | row) if options.json else telling.line(file, row))
    return 0 if good else 1


def _now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)


_ACTIONS = {"new": _new, "gateway": _gateway, "renew": _renew, "show": _show}
